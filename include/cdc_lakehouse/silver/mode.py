"""Whether silver of a table has a row per key or a row per event: decided from the columns of both layers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cdc_lakehouse.config.models import Mode, Table
from cdc_lakehouse.errors import InvalidShapeError, KeylessUpsertError, KeySchemaDriftError, ModeChangedError
from cdc_lakehouse.lake.bronze_schema import ATTEMPT
from cdc_lakehouse.lake.silver_mode import written_as

KEY = "key"
"""Bronze of a table whose key nobody knows has no such column (decision 0025)."""
NO_COLUMNS = "no columns"


def mode_of(table: Table, *, bronze: pa.Schema, silver: pa.Schema | None) -> Mode:
    """Raises where silver has rows of another mode, and where it cannot have rows of the wanted one."""
    has_key = table.key is not None or KEY in bronze.names
    if table.mode is Mode.UPSERT and not has_key:
        raise KeylessUpsertError(table=table.name)
    mode = table.mode or (Mode.UPSERT if has_key else Mode.APPEND)
    if mode is Mode.APPEND:
        _refuse_choices(table)
    elif table.filter is not None and table.history:
        problem = "a table with `filter` cannot have one yet: it would tell the rows that the filter hides"
        raise InvalidShapeError(table=table.name, setting="history", problem=problem)
    was = None if silver is None else written_as(silver)
    if was in (None, mode):
        return mode
    if table.mode is None and table.key is None and got_its_key_later(bronze.names):
        now = ", ".join(f"{field.name} {field.type}" for field in bronze.field(KEY).type)
        raise KeySchemaDriftError(table=table.name, was=NO_COLUMNS, now=now)
    raise ModeChangedError(table=table.name, was=str(was), now=str(mode))


def _refuse_choices(table: Table) -> None:
    """A mask that is not applied would show what it is to hide."""
    chosen = {"columns": not table.columns.is_all, "filter": table.filter is not None}
    for setting in (name for name, is_set in chosen.items() if is_set):
        problem = "silver with a row per event has all columns and rows"
        raise InvalidShapeError(table=table.name, setting=setting, problem=problem)
    if table.topic_column is not None:
        problem = "silver with a row per event has `_cdc_topic`"
        raise InvalidShapeError(table=table.name, setting="topic_column", problem=problem)


def got_its_key_later(bronze: Sequence[str]) -> bool:
    """Whether bronze with these columns was written before a key was known: new ones stand at the end."""
    return KEY in bronze and bronze.index(KEY) > bronze.index(ATTEMPT.name)
