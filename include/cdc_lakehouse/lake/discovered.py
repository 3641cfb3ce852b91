"""The tables that a pipeline discovered before, as the lake itself tells: no Kafka, no list to keep."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cdc_lakehouse.config.models import Discover, Pipeline, Table
from cdc_lakehouse.config.values import NAME_PATTERN
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.kafka.discovery import is_discovered
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.ledger import Ledger, topic_of
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.newest_ledger import newest_ledger
from cdc_lakehouse.lake.state import look_into


def with_tables_of_the_lake(pipeline: Pipeline, *, root: str) -> Pipeline:
    """Behind the listed tables those whose bronze says that they come from topics that `discover:` asks for.

    A folder without a commit is no table yet: its ingest makes it one.
    """
    discover = pipeline.discover
    if discover is None:
        return pipeline
    lake = Lake(root=root, pipeline=pipeline.name)
    listed = {table.name for table in pipeline.tables}
    folders = (folder.name for folder in files.folders(lake.bronze_tables))
    names = [name for name in folders if name not in listed and re.fullmatch(NAME_PATTERN, name)]
    found = [table for name in names if (table := _table(pipeline, discover, lake, name)) is not None]
    return pipeline.model_copy(update={"tables": (*pipeline.tables, *found)})


def tables_left_in_the_lake(pipeline: Pipeline, names: Iterable[str], *, root: str) -> tuple[Table, ...]:
    """Return those of `names` that the pipeline does not have, and of which the lake holds a folder.

    The record of a repair is such a folder: it outlives the table. Their topics are those of bronze, if there
    is one.
    """
    lake, known = Lake(root=root, pipeline=pipeline.name), {table.name for table in pipeline.tables}
    unknown = [name for name in names if name not in known and re.fullmatch(NAME_PATTERN, name)]
    kept = [name for name in unknown if any(map(_is_folder, _folders_of(lake, name)))]
    return tuple(Table(name=name, topics=_topics_of_bronze(lake, name) or (name,)) for name in kept)


def _folders_of(lake: Lake, table: str) -> tuple[str, ...]:
    return lake.bronze(table), lake.silver(table), lake.repairs(table)


def _is_folder(uri: str) -> bool:
    parent, _, name = uri.rpartition("/")
    return any(folder.name == name for folder in files.folders(parent))


def _topics_of_bronze(lake: Lake, name: str) -> tuple[str, ...]:
    """Return no topics for a bronze that is not there, or that cannot be read."""
    try:
        ledger = _ledger(lake, name)
    except LakehouseError:
        return ()
    return () if ledger is None else _topics(ledger)


def _table(pipeline: Pipeline, discover: Discover, lake: Lake, name: str) -> Table | None:
    newest = newest_ledger(lake.bronze(name), table=name)
    try:
        ledger = newest.ledger if newest is not None else _ledger(lake, name)
    except LakehouseError:
        # What is wrong with it is said by whoever works on it, under its name. No topic is called like that.
        return discover.table(name, topics=(name,))
    topics = _topics(ledger) if ledger is not None else ()
    if not topics or not all(is_discovered(pipeline, topic) for topic in topics):
        return None
    return discover.table(name, topics=topics)


def _ledger(lake: Lake, name: str) -> Ledger | None:
    state = look_into(lake.bronze(name), table=name)
    return state.ledger if state is not None else None


def _topics(ledger: Ledger) -> tuple[str, ...]:
    return tuple(dict.fromkeys(topic_of(source) for source in ledger.sources))
