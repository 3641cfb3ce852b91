"""Raw decoded records into facts of the event and values of the table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from cdc_lakehouse.avro.faults import RecordFault, ValueFault
from cdc_lakehouse.avro.typed.plans import ValuePlan
from cdc_lakehouse.avro.typed.text_sizes import TextSize, members_text_size, require_text_budget
from cdc_lakehouse.avro.typed.values import Convert
from cdc_lakehouse.debezium.columns import Column, column_for
from cdc_lakehouse.debezium.envelope import SIDES, Envelope, Field, Record, plan_envelope, plan_key
from cdc_lakehouse.debezium.evolution import fitting
from cdc_lakehouse.debezium.faults import EventFault
from cdc_lakehouse.debezium.source import Source, source_of
from cdc_lakehouse.errors import ConfigError

Values = Sequence[Any]
"""Final values in the order of the table's columns."""


@dataclass(frozen=True, slots=True)
class Transaction:
    id: str | None
    total_order: int | None
    data_collection_order: int | None


@dataclass(slots=True)
class Event:
    """One record on its way to a bronze row; what is not known stays None."""

    key: Values | None = None
    op: str | None = None
    before: Values | None = None
    after: Values | None = None
    source: Source | None = None
    transaction: Transaction | None = None
    fault: RecordFault | None = None
    schema_ids: tuple[int | None, int | None] = field(default=(None, None))
    tolerant: bool = False
    """A value of the row that its column cannot hold becomes null, and the column is named."""
    out_of_range: list[str] = field(default_factory=list)

    def fail(self, fault: RecordFault) -> None:
        """The first fault counts. Values of a row that is not whole are not shown; its key is."""
        if self.fault is None:
            self.fault = fault
        self.before = self.after = None
        self.out_of_range.clear()

    def tolerates(self, column: str, fault: RecordFault) -> bool:
        """Never in a key: rows whose keys differ would become one."""
        if not (self.tolerant and fault.code == ValueFault.VALUE_OUT_OF_RANGE):
            return False
        if column not in self.out_of_range:
            self.out_of_range.append(column)
        return True


@dataclass(frozen=True, eq=False, slots=True)
class _Slot:
    """How a column of the table gets its value from a raw record of one writer."""

    name: str
    sent_as: str | None
    """None where this writer does not send it."""
    convert: Convert | None
    fit: Convert | None

    def value(self, raw: Mapping[str, Any]) -> Any:
        value = None if self.sent_as is None else raw[self.sent_as]
        if value is None:
            return None
        try:
            if self.convert is not None:
                value = self.convert(value)
            return value if self.fit is None else self.fit(value)
        except RecordFault as fault:
            raise fault.at(self.name) from None


class KeyDecoder:
    """Keys of one writer schema."""

    def __init__(self, text: str, columns: tuple[Column, ...], table: str) -> None:
        self.plan: Record = _planned(plan_key, text, table)
        self._slots = _slots(self.plan.fields, columns)
        self._text_size = text_size_of(self.plan.fields)
        if {column.name for column in columns} - {each.name for each in self.plan.fields}:
            raise RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, "key without a field of the table's key")

    def decode(self, payload: bytes, event: Event) -> None:
        try:
            raw = self.plan.schema.read(payload)
            if self._text_size is not None:
                require_text_budget(self._text_size.of_value(raw), len(payload))
            event.key = [slot.value(raw) for slot in self._slots]
        except RecordFault as fault:
            event.fail(fault.at("key"))


class ValueDecoder:
    """Change events of one writer schema."""

    def __init__(
        self, text: str, columns: tuple[Column, ...], table: str, dropped: frozenset[str] = frozenset()
    ) -> None:
        self.plan: Envelope = _planned(partial(plan_envelope, dropped=dropped), text, table)
        self._before = _slots(self.plan.before, columns)
        self._after = _slots(self.plan.after, columns)
        sides = zip(SIDES, (self.plan.before, self.plan.after), strict=True)
        self._text_size = members_text_size({side: text_size_of(fields) for side, fields in sides})

    def decode(self, payload: bytes, event: Event) -> None:
        """Says what the event is even where a value of its row does not fit."""
        try:
            raw = self.plan.schema.read(payload)
            event.source = source_of(_block(raw, "source"))
            event.transaction = _transaction(_block(raw, "transaction"))
            event.op = raw["op"]
            if self._text_size is not None:
                require_text_budget(self._text_size.of_value(raw), len(payload))
            if event.fault is None:
                event.before = _row(self._before, raw, "before", event)
                event.after = _row(self._after, raw, "after", event)
        except RecordFault as fault:
            event.fail(fault.at("value"))


@lru_cache(maxsize=4096)
def key_decoder(text: str, columns: tuple[Column, ...], table: str) -> KeyDecoder | RecordFault:
    """The fault that every record of this schema has, when it cannot be a key of the table."""
    try:
        return KeyDecoder(text, columns, table)
    except RecordFault as fault:
        return fault.at("key")


@lru_cache(maxsize=4096)
def value_decoder(
    text: str, columns: tuple[Column, ...], table: str, dropped: frozenset[str] = frozenset()
) -> ValueDecoder | RecordFault:
    """The fault that every record of this schema has, when it cannot be an event of the table."""
    try:
        return ValueDecoder(text, columns, table, dropped)
    except RecordFault as fault:
        return fault.at("value")


def _planned(plan: Any, text: str, table: str) -> Any:
    """The driver plans every schema of the table's subjects; one that fails here is a stray one."""
    try:
        return plan(text, table=table)
    except ConfigError as exc:
        raise RecordFault(EventFault.NOT_AN_ENVELOPE, str(exc)) from None


def text_size_of(fields: tuple[Field, ...]) -> TextSize | None:
    """Return the size of the texts that the numbers of a row, or of a key, become."""
    return members_text_size({each.name: each.value.text_size for each in fields})


def sent_to(fields: tuple[Field, ...], columns: tuple[Column, ...]) -> dict[Column, ValuePlan]:
    """Which columns of the table this writer sends, and how."""
    targets = [(column_for(each.name, each.value.type, columns), each.value) for each in fields]
    return {column: value for column, value in targets if column is not None}


def _slots(fields: tuple[Field, ...], columns: tuple[Column, ...]) -> tuple[_Slot, ...]:
    strange = [each.name for each in fields if column_for(each.name, each.value.type, columns) is None]
    if strange:
        raise RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, f"{strange[0]}: the table has no such column")
    sent = sent_to(fields, columns)
    return tuple(
        _Slot(column.name, column.sent_as, convert=plan.convert, fit=fitting(plan.type, column.type))
        if (plan := sent.get(column)) is not None
        else _Slot(column.name, sent_as=None, convert=None, fit=None)
        for column in columns
    )


def _row(slots: tuple[_Slot, ...], raw: Mapping[str, Any], side: str, event: Event) -> Values | None:
    row = raw.get(side)
    if row is None:
        return None
    values = []
    for slot in slots:
        try:
            values.append(slot.value(row))
        except RecordFault as fault:
            if not event.tolerates(slot.name, fault):
                raise fault.at(side) from None
            values.append(None)
    return values


def _block(raw: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    block = raw.get(name)
    return block if isinstance(block, dict) else None


def _transaction(block: Mapping[str, Any] | None) -> Transaction | None:
    if block is None:
        return None
    id_, total, own = (block.get(name) for name in ("id", "total_order", "data_collection_order"))
    return Transaction(
        id=id_ if isinstance(id_, str) else None,
        total_order=total if isinstance(total, int) else None,
        data_collection_order=own if isinstance(own, int) else None,
    )
