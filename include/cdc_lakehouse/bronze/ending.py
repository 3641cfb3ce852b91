"""A table that is gone at its source: a person ends the reading, and what there is stays. No I/O.

Nothing is switched off by that. A topic that is there is read, whatever was decided: if records come again,
the table goes on by itself, and if the topic was made again, that is `TOPIC_RECREATED` as for other tables.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from cdc_lakehouse.bronze.decided import Named, require_what_stands
from cdc_lakehouse.bronze.incarnations import current_source
from cdc_lakehouse.bronze.losses import go_on_behind, told, unread
from cdc_lakehouse.config.topics import is_pattern
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.ledger import Ledger, has_ended, step_name, topics_of

_NAME = re.compile(r"step(?P<step>[0-9]+)")


def end_reading(ledger: Ledger, facts: ClusterFacts, *, named: Named | None) -> tuple[Ledger, dict[str, Any]]:
    """Return the ledger that misses none of the topics that a person ends, and the decision.

    What Kafka was seen to hold of them and nobody read is a gap. A decision of a step before the table's own
    was carried out by an earlier try where nothing is left to end. Raises `DecisionOutdatedError` where it
    was about something else.
    """
    if named is None:
        return ledger, {}
    sources = _sources_that_can_end(ledger, facts)
    if not sources and ledger.ended and named and all(_step_in(each) < ledger.seq for each in named):
        return ledger, {}
    standing = frozenset({step_name(ledger)}) if sources else frozenset[str]()
    require_what_stands("stop_reading", table=ledger.table, named=named, standing=standing)
    left = unread(ledger, sources)
    after = replace(go_on_behind(ledger, left), ended=tuple(sorted({*ledger.ended, *sources})))
    return after, {"stop_reading": {"ended": sorted(sources), "left": told(left)}}


def is_not_missed(ledger: Ledger, topic: str, *, facts: ClusterFacts) -> bool:
    """Whether a topic is gone and a person ended it. A pattern that matches nothing stands for all topics."""
    if topic in facts.topics or topic in facts.silent:
        return False
    return has_ended(ledger, None if is_pattern(topic) else topic)


def _sources_that_can_end(ledger: Ledger, facts: ClusterFacts) -> tuple[str, ...]:
    """Return the topics that are gone and not ended; where none is gone, all of them, if there is no news."""
    current = {topic: current_source(ledger, topic) for topic in topics_of(ledger)}
    sources = {topic: source for topic, source in current.items() if source is not None}
    gone = sources.keys() - facts.topics.keys() - facts.silent.keys()
    left = [source for topic, source in sources.items() if topic in gone and source not in ledger.ended]
    if gone or any(_has_news(ledger, topic, facts) for topic in sources):
        return tuple(left)
    return tuple(source for source in sources.values() if source not in ledger.ended)


def _has_news(ledger: Ledger, topic: str, facts: ClusterFacts) -> bool:
    """Whether there is something to read, or nobody knows."""
    known = facts.topics.get(topic)
    if known is None:
        return True
    ends = (ledger.end(known.source, partition) for partition in known.partitions)
    return any(end != offsets.latest for end, offsets in zip(ends, known.partitions.values(), strict=True))


def _step_in(name: str) -> float:
    found = _NAME.fullmatch(name)
    return float("inf") if found is None else int(found["step"])
