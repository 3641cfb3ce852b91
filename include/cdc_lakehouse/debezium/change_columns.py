"""Change events and keys of one writer schema as columns: the columnar twin of `events`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.columnar import Projection, Reader
from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.spread import Spread, spread_out
from cdc_lakehouse.avro.typed.columns import ConvertColumn, present
from cdc_lakehouse.avro.typed.text_sizes import TextSize, over_text_budget
from cdc_lakehouse.avro.wire import Wire
from cdc_lakehouse.debezium.columns import Column
from cdc_lakehouse.debezium.envelope import SIDES, Field
from cdc_lakehouse.debezium.events import KeyDecoder, ValueDecoder, sent_to, text_size_of
from cdc_lakehouse.debezium.evolution import fitting_column
from cdc_lakehouse.debezium.source_columns import (
    SOURCE_FIELDS,
    TRANSACTION_FIELDS,
    source_columns,
    struct_under,
    transaction_columns,
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Columns of some rows. `sound`: the bytes are Avro; `fits`: and the values fit the table."""

    columns: pa.StructArray
    sound: np.ndarray
    fits: np.ndarray


@dataclass(frozen=True, slots=True)
class _Slot:
    """How a column of the table gets its values from those of a writer that may not send it."""

    column: Column
    sent: bool
    """Under the name `column.sent_as`."""
    steps: tuple[ConvertColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Equal for all schemas whose keys can be decoded together."""

    wire: Wire
    slots: tuple[_Slot, ...]
    text_size: TextSize | None
    raw: Reader = field(compare=False)

    @classmethod
    def of(cls, decoder: KeyDecoder, columns: tuple[Column, ...]) -> KeyColumns:
        wire = decoder.plan.schema.wire
        sizes = text_size_of(decoder.plan.fields)
        return cls(wire, _slots(decoder.plan.fields, columns), sizes, Reader.of(wire))

    def read(self, memory: Memory, start: np.ndarray, end: np.ndarray) -> Decoded:
        raw, sound = self.raw.read(memory, start, end)
        over = None
        if self.text_size is not None:
            over = over_text_budget(self.text_size.of_column(raw), end - start, sound)
        key, fits = _row(raw, self.slots, over)
        return Decoded(_struct({"key": key}), sound, sound & fits)


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """Equal for all schemas whose events can be decoded together."""

    wire: Wire
    before: tuple[_Slot, ...]
    after: tuple[_Slot, ...]
    text_sizes: tuple[TextSize | None, TextSize | None]
    """Sizes of the row before and of the row after."""
    raw: Reader = field(compare=False)

    @classmethod
    def of(cls, decoder: ValueDecoder, columns: tuple[Column, ...]) -> ValueColumns | None:
        """None for an envelope of a shape that no connector sends: its records are read one by one."""
        wire = decoder.plan.schema.wire
        members = dict(zip(wire.names, wire.parts, strict=True))
        kinds = {_value(members[side]).kind for side in SIDES if side in members}
        blocks = [_value(members[name]) for name in ("source", "transaction") if name in members]
        if not (_is_usual(blocks) and kinds == {"record"} and _value(members["op"]).kind == "string"):
            return None
        rows = {"before": _only(decoder.plan.before), "after": _only(decoder.plan.after)}
        wanted = Projection(
            (
                ("op", None),
                *((side, rows[side]) for side in SIDES if side in members),
                ("source", Projection(tuple((name, None) for name in SOURCE_FIELDS))),
                ("transaction", Projection(tuple((name, None) for name in TRANSACTION_FIELDS))),
            )
        )
        before, after = (_slots(fields, columns) for fields in (decoder.plan.before, decoder.plan.after))
        sizes = text_size_of(decoder.plan.before), text_size_of(decoder.plan.after)
        return cls(wire, before, after, sizes, Reader.of(wire, wanted))

    def read(self, memory: Memory, start: np.ndarray, end: np.ndarray) -> Decoded:
        raw, sound = self.raw.read(memory, start, end)
        parts = dict(zip(raw.type.names, raw.flatten(), strict=True))
        nothing = pa.nulls(len(raw))
        rows = parts.get("before", nothing), parts["after"]
        over = self._over_text_budget(rows, end - start, sound)
        before, before_fits = _row(rows[0], self.before, over)
        after, after_fits = _row(rows[1], self.after, over)
        columns = {
            "op": parts["op"],
            "before": before,
            "after": after,
            "source": source_columns(parts["source"]),
            "transaction": transaction_columns(parts.get("transaction", nothing)),
        }
        return Decoded(_struct(columns), sound, sound & before_fits & after_fits)

    def _over_text_budget(
        self, rows: tuple[pa.Array, pa.Array], sizes: np.ndarray, sound: np.ndarray
    ) -> np.ndarray | None:
        texts = [
            size.of_column(row) for row, size in zip(rows, self.text_sizes, strict=True) if size is not None
        ]
        return over_text_budget(np.sum(texts, axis=0), sizes, sound) if texts else None


def _only(fields: tuple[Field, ...]) -> Projection:
    """Columns that the table leaves out are passed over."""
    return Projection(tuple((each.name, None) for each in fields))


def _value(wire: Wire) -> Wire:
    return wire.parts[0] if wire.kind == "nullable" else wire


def _is_usual(blocks: list[Wire]) -> bool:
    """Fields of odd kinds have their own rules there (a boolean counts as a number, say)."""
    fields = [_value(part).kind for block in blocks for part in block.parts]
    kinds = {"string", "int", "long", "null"}
    return all(block.kind == "record" for block in blocks) and set(fields) <= kinds


def _slots(fields: tuple[Field, ...], columns: tuple[Column, ...]) -> tuple[_Slot, ...]:
    sent = sent_to(fields, columns)
    slots = []
    for column in columns:
        plan = sent.get(column)
        steps = (plan.column, fitting_column(plan.type, column.type)) if plan is not None else ()
        slots.append(_Slot(column, plan is not None, tuple(step for step in steps if step is not None)))
    return tuple(slots)


def _row(
    raw: pa.Array, slots: tuple[_Slot, ...], over: np.ndarray | None
) -> tuple[pa.StructArray, np.ndarray | bool]:
    """Values of the table's columns, and a mask of the rows all of whose values fit; not of those `over`."""
    type_ = pa.struct([(slot.column.name, slot.column.type) for slot in slots])
    if raw.null_count == len(raw):
        return pa.nulls(len(raw), type_), True if over is None else ~over
    if over is not None or 4 * (len(raw) - raw.null_count) < len(raw):
        some = Spread(present(raw) if over is None else present(raw) & ~over)
        few, few_fit = _row_of(raw.take(pa.array(some.rows)), slots, type_)
        fits = np.ones(len(raw), bool) if over is None else ~over
        fits[some.rows] = few_fit
        return spread_out(few, some), fits
    return _row_of(raw, slots, type_)


def _row_of(
    raw: pa.Array, slots: tuple[_Slot, ...], type_: pa.DataType
) -> tuple[pa.StructArray, np.ndarray | bool]:
    fits: np.ndarray | bool = True
    children = []
    for slot in slots:
        child = None
        if slot.sent and pa.types.is_struct(raw.type):
            child = raw.field(slot.column.sent_as)
            for step in slot.steps:
                child, refused = step(child)
                if refused is not None:
                    fits = ~refused & fits
        children.append(pa.nulls(len(raw), slot.column.type) if child is None else child)
    return struct_under(raw, type_, children), fits


def _struct(columns: dict[str, pa.Array]) -> pa.StructArray:
    type_ = pa.struct([(name, column.type) for name, column in columns.items()])
    children = list(columns.values())
    return pa.Array.from_buffers(type_, len(children[0]), [None], 0, children=children)


Program = KeyColumns | ValueColumns


def program_of(decoder: KeyDecoder | ValueDecoder, columns: tuple[Column, ...]) -> Program | None:
    if isinstance(decoder, KeyDecoder):
        return KeyColumns.of(decoder, columns)
    return ValueColumns.of(decoder, columns)
