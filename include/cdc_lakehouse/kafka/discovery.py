"""Which topics of the cluster feed which tables: patterns and `discover:` of a pipeline, decided on names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from cdc_lakehouse.config.models import Discover, Pipeline, Table
from cdc_lakehouse.config.topics import is_pattern, matches, matches_any
from cdc_lakehouse.config.values import NAME_PATTERN, table_name_problem
from cdc_lakehouse.debezium.control_topics import is_control_topic, resembles_control_topic
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.errors import UndiscoverableTopicError


@dataclass(frozen=True, slots=True)
class Discovery:
    pipeline: Pipeline
    """Its tables: the listed ones with their topics by name, in their order, then those that were found."""
    refused: tuple[UndiscoverableTopicError, ...]
    """Topics that a pattern matches and that can feed no table; all others go on."""
    control: tuple[str, ...]
    """Topics that a pattern matches and that are left alone for their names."""
    doubtful: tuple[str, ...]
    """Topics that were taken for tables although their names resemble those of control topics."""

    def notes(self) -> dict[str, list[str]]:
        """Return what a run reports; empty lists are left out."""
        notes = {"topics_left_alone": list(self.control), "topics_taken_in_doubt": list(self.doubtful)}
        return {name: topics for name, topics in notes.items() if topics}


def needs_topics(pipeline: Pipeline) -> bool:
    """Whether the names of the cluster's topics say more than the file does."""
    return pipeline.discover is not None or any(map(is_pattern, _entries(pipeline.tables)))


def discover(pipeline: Pipeline, topics: Collection[str]) -> Discovery:
    """`topics` are all of the cluster that the login may see."""
    named = {entry for entry in _entries(pipeline.tables) if not is_pattern(entry)}
    free = sorted(topic for topic in topics if topic not in named and not _is_left_alone(pipeline, topic))
    claims = {
        topic: [table.name for table in pipeline.tables if matches_any(table.topics, topic)] for topic in free
    }
    refused = [_claimed_twice(topic, tables) for topic, tables in claims.items() if len(tables) > 1]
    owners = {topic: tables[0] for topic, tables in claims.items() if len(tables) == 1}
    listed = tuple(_with_topics(table, owners) for table in pipeline.tables)
    unclaimed = [topic for topic, tables in claims.items() if not tables]
    discovered, unnamed = _tables_of(pipeline, unclaimed, taken={table.name for table in listed})
    wanted = sorted(topic for topic in topics if topic not in named and _wanted(pipeline, topic))
    return Discovery(
        pipeline=pipeline.model_copy(update={"tables": (*listed, *discovered)}),
        refused=(*refused, *unnamed),
        control=tuple(topic for topic in wanted if _is_left_alone(pipeline, topic)),
        doubtful=tuple(topic for topic in wanted if _is_doubtful(pipeline, topic)),
    )


def is_discovered(pipeline: Pipeline, topic: str) -> bool:
    """Whether `discover:` asks for a topic of this name."""
    return _is_asked_for(pipeline.discover, topic) and not _is_left_alone(pipeline, topic)


def _is_asked_for(discover: Discover | None, topic: str) -> bool:
    if discover is None or matches_any(discover.exclude, topic):
        return False
    return matches_any((*discover.topics, *discover.include), topic)


def _is_left_alone(pipeline: Pipeline, topic: str) -> bool:
    """Return whether its name says that it is no table, unless `include:` says that it is one."""
    if _is_included(pipeline, topic):
        return False
    return is_control_topic(topic) or prefix_and_relation(topic)[1] == pipeline.signal_table


def _is_doubtful(pipeline: Pipeline, topic: str) -> bool:
    """Return whether it is taken for a table with a name like a control topic's, without an `include:`."""
    if _is_included(pipeline, topic) or _is_left_alone(pipeline, topic):
        return False
    return resembles_control_topic(topic)


def _is_included(pipeline: Pipeline, topic: str) -> bool:
    return pipeline.discover is not None and matches_any(pipeline.discover.include, topic)


def table_name(topic: str) -> str:
    """`shop.public.order-lines` -> `order_lines`: the last part in small letters. It may be no name."""
    return topic.rpartition(".")[2].lower().replace("-", "_")


def _entries(tables: Iterable[Table]) -> list[str]:
    return [entry for table in tables for entry in table.topics]


def _wanted(pipeline: Pipeline, topic: str) -> bool:
    return _is_asked_for(pipeline.discover, topic) or any(
        is_pattern(entry) and matches(entry, topic) for entry in _entries(pipeline.tables)
    )


def _with_topics(table: Table, owners: dict[str, str]) -> Table:
    """Patterns become the topics that they match; one that matches none stays, and is missed by name."""
    if not any(map(is_pattern, table.topics)):
        return table
    topics: list[str] = []
    for entry in table.topics:
        matched = [
            topic for topic, owner in owners.items() if owner == table.name and matches_any([entry], topic)
        ]
        topics += matched if is_pattern(entry) and matched else [entry]
    return table.model_copy(update={"topics": tuple(dict.fromkeys(topics))})


def _tables_of(
    pipeline: Pipeline, topics: Sequence[str], *, taken: Collection[str]
) -> tuple[list[Table], list[UndiscoverableTopicError]]:
    """A name that two topics would have belongs to neither: which one came first is no reason."""
    options = pipeline.discover
    by_name: dict[str, list[str]] = defaultdict(list)
    refused = []
    for topic in topics:
        if is_discovered(pipeline, topic):
            by_name[table_name(topic)].append(topic)
    found = []
    for name, same in sorted(by_name.items()):
        problem = _problem_with(name, same, taken=taken)
        if problem is None and options is not None:
            found.append(options.table(name, topics=tuple(same)))
        refused += [UndiscoverableTopicError(topic=topic, problem=problem) for topic in same if problem]
    return found, refused


def _problem_with(name: str, topics: Sequence[str], *, taken: Collection[str]) -> str | None:
    if re.fullmatch(NAME_PATTERN, name) is None:
        return f"{name!r} is not a name: a small letter first, then small letters, digits and '_', 63 at most"
    if name in taken:
        return f"there is a table {name} already, which other topics feed"
    if len(topics) > 1:
        return f"{' and '.join(topics)} would both be the table {name}"
    return table_name_problem(name)


def _claimed_twice(topic: str, tables: Sequence[str]) -> UndiscoverableTopicError:
    return UndiscoverableTopicError(topic=topic, problem=f"it matches `topics:` of {' and of '.join(tables)}")
