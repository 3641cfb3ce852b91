"""How silver's columns follow those of bronze: decisions on values, no Spark, no I/O (decision 0026)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cdc_lakehouse.config.models import OnDroppedColumn, OnSchemaChange
from cdc_lakehouse.errors import (
    ColumnDroppedError,
    IncompatibleSchemaError,
    NotSupportedYetError,
    SchemaChangedError,
)
from cdc_lakehouse.silver.schema.dropped import DroppedColumns

SYSTEM_PREFIX = "_cdc_"
METADATA = "_metadata"
"""Where Spark says which file a row is in; Delta's MERGE fails at a table with such a column of its own."""


class ChangeKind(StrEnum):
    ADDED = "added"
    WIDENED = "widened"
    SIDE_COLUMN = "side_column"
    """Added beside a column whose new values its type cannot hold."""
    DROPPED = "dropped"
    """The source does not send it any more; silver has it still."""
    SENT_AGAIN = "sent_again"
    """The source did not send it for a while."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column of silver that is not as bronze has it, with types in Spark's words."""

    kind: ChangeKind
    column: str
    was: str | None
    """The type in silver; of a side column that of the column that it stands beside."""
    now: str
    """The type; of a dropped column what silver has in it, as `on_dropped_column` calls it."""
    after: str = ""
    """The column that a new one stands behind, so that the source's columns stay together."""
    sent_as: str = ""
    """The name under which the source sends its values."""
    schema_ids: tuple[int, ...] = ()
    """Of the writers that send it so, the first met first; those that are known."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer schema that records of the work have."""

    schema_id: int
    types: Mapping[str, str]
    """Its columns, in Spark's words."""


_WIDER = {
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}


def plan_columns(
    existing: Mapping[str, str], wanted: Mapping[str, str], *, table: str, sides: Mapping[str, str]
) -> tuple[ColumnChange, ...]:
    """What makes silver's columns (name -> type) hold those of bronze; nothing is ever dropped.

    `sides` says which column a side column stands beside. Raises where no values can be kept.
    """
    changes, last = [], ""
    for name, type_ in wanted.items():
        was = existing.get(name)
        if was is None:
            changes.append(_new(name, type_, after=last, beside=sides.get(name), existing=existing))
        elif was != type_:
            if not _widens(was, type_):
                raise IncompatibleSchemaError(table=table, column=name, was=was, now=type_)
            sent = sides.get(name, name)
            changes.append(ColumnChange(ChangeKind.WIDENED, name, was, type_, sent_as=sent))
        last = name
    return tuple(changes)


def with_writers(changes: Sequence[ColumnChange], writers: Sequence[Writer]) -> tuple[ColumnChange, ...]:
    """Return the changes with the ids of the writer schemas that made them, the first met first."""
    return tuple(
        ColumnChange(
            each.kind,
            each.column,
            each.was,
            each.now,
            after=each.after,
            sent_as=each.sent_as,
            schema_ids=tuple(writer.schema_id for writer in writers if _sends(writer, each)),
        )
        for each in changes
    )


def dropped_changes(dropped: DroppedColumns, existing: Mapping[str, str]) -> tuple[ColumnChange, ...]:
    """Return the changes for columns of silver (name -> type) that the source dropped or sends again."""
    drops = [
        ColumnChange(ChangeKind.DROPPED, name, existing[name], dropped.treated[name], sent_as=name)
        for name in dict.fromkeys((*dropped.new, *dropped.emptied))
        if name in existing
    ]
    again = [
        ColumnChange(ChangeKind.SENT_AGAIN, name, existing[name], existing[name], sent_as=name)
        for name in dropped.sent_again
        if name in existing
    ]
    return (*drops, *again)


def refuse_dropped(changes: Sequence[ColumnChange], policy: OnDroppedColumn, *, table: str) -> None:
    names = [change.column for change in changes if change.kind is ChangeKind.DROPPED]
    if names and policy is OnDroppedColumn.STOP:
        raise ColumnDroppedError(table=table, columns=", ".join(names))


def refuse_by_policy(changes: Sequence[ColumnChange], policy: OnSchemaChange, *, table: str) -> None:
    """Silver of a strict table waits for a person, whatever changed."""
    if changes and policy is OnSchemaChange.STRICT:
        raise SchemaChangedError(table=table, diff=", ".join(map(told, changes)))


def told(change: ColumnChange) -> str:
    """As a sentence has it."""
    match change.kind:
        case ChangeKind.ADDED:
            what = f"{change.column} is new, {change.now}"
        case ChangeKind.WIDENED | ChangeKind.SIDE_COLUMN:
            what = f"{change.column} was {change.was} and is now {change.now}"
        case ChangeKind.DROPPED:
            what = f"{change.column} is not sent any more"
        case ChangeKind.SENT_AGAIN:
            what = f"{change.column} is sent again"
    return what + (f" (schema {change.schema_ids[0]})" if change.schema_ids else "")


def refuse_system_names(columns: tuple[str, ...], *, table: str) -> None:
    """A source column that looks like one of ours, or of Spark's, would be taken for it."""
    for name in columns:
        if name.lower() == METADATA:
            way_out = "this name is Spark's; give it another (columns.rename)"
            raise NotSupportedYetError(feature=f"the column {name} of {table}: {way_out}")
        if name.lower().startswith(SYSTEM_PREFIX):
            raise NotSupportedYetError(
                feature=f"the column {name} of {table}: names that start with {SYSTEM_PREFIX} are ours"
            )


def _new(
    name: str, type_: str, *, after: str, beside: str | None, existing: Mapping[str, str]
) -> ColumnChange:
    if beside is None:
        return ColumnChange(ChangeKind.ADDED, name, None, type_, after=after, sent_as=name)
    was = existing.get(beside)
    return ColumnChange(ChangeKind.SIDE_COLUMN, name, was, type_, after=after, sent_as=beside)


def _sends(writer: Writer, change: ColumnChange) -> bool:
    sent = writer.types.get(change.sent_as)
    if sent is None:
        return change.kind is ChangeKind.DROPPED
    match change.kind:
        case ChangeKind.DROPPED:
            return False
        case ChangeKind.ADDED | ChangeKind.SENT_AGAIN:
            return True
        case ChangeKind.WIDENED:
            return sent != change.was
        case ChangeKind.SIDE_COLUMN:
            return sent == change.now or _widens(sent, change.now)


def _widens(was: str, now: str) -> bool:
    """Whether Delta widens the type without touching a file, and no value changes."""
    if now in _WIDER.get(was, ()):
        return True
    before, after = _decimal(was), _decimal(now)
    if before is None or after is None:
        return False
    more_digits, more_scale = after[0] - before[0], after[1] - before[1]
    return more_digits >= more_scale >= 0


def _decimal(type_: str) -> tuple[int, int] | None:
    if not type_.startswith("decimal("):
        return None
    precision, scale = type_.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)
