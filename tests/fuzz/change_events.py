"""Change events of one table as a target: made ones, and those that were captured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from debezium_damage import EVENTS, key_bytes, told, value_bytes  # type: ignore[import-not-found]
from debezium_records import HEADERS  # type: ignore[import-not-found]

from cdc_lakehouse.debezium import decode as decoding
from cdc_lakehouse.debezium.headers import KEY_SCHEMA_ID, VALUE_SCHEMA_ID
from cdc_lakehouse.debezium.plans import DecodePlans
from fuzz.batches import (  # type: ignore[import-not-found]
    MOST_RECORD_BYTES,
    Frame,
    by_both_names,
    frames,
    head,
    require_alike,
    sown,
)
from fuzz.inputs import Input, Option  # type: ignore[import-not-found]
from fuzz.oracles import require_fastavro  # type: ignore[import-not-found]
from unit.captured_records import topics  # type: ignore[import-not-found]

PLAIN = Option(0)


@dataclass(frozen=True, eq=False)
class ChangeEvents:
    """Records of one table; `keys` and `values` are payloads with the numbers of their schemas."""

    name: str
    plans: DecodePlans
    keys: tuple[tuple[int, bytes], ...]
    values: tuple[tuple[int, bytes], ...]

    def seeds(self, choices: Sequence[Option]) -> list[bytes]:
        return [
            data
            for options in choices
            for data in sown(self.name, self.keys if Option.KEYS in options else self.values, options)
        ]

    def check(self, case: Input) -> None:
        as_keys = Option.KEYS in case.options
        sides = self.keys if as_keys else self.values
        sent = frames(case, sorted({number for number, _ in sides}) or [0])
        plans = _plans(
            self, null_if_out_of_range=Option.AS_NULL in case.options, drops=Option.DROPPED in case.options
        )
        batch = self._batch(sent, as_keys=as_keys)
        require_alike(lambda some: decoding.decode(some, plans), decoding, batch, case.options)
        for data, header in sent:
            if data is not None:
                require_fastavro(
                    plans.schemas, data, header, same=lambda one, other: repr(one) == repr(other)
                )

    def _batch(self, sent: list[Frame], *, as_keys: bool) -> pa.RecordBatch:
        """All of one offset, so that a row says nothing of its place."""
        count, name = len(sent), KEY_SCHEMA_ID if as_keys else VALUE_SCHEMA_ID
        other = self.values[:1] if as_keys else self.keys[:1]
        beside: list[bytes | None] = [head(number, PLAIN) + data for number, data in other] or [None]
        records = [data for data, _ in sent]
        headers = [None if header is None else [{"key": name, "value": header}] for _, header in sent]
        return pa.record_batch(
            {
                "key": pa.array(records if as_keys else beside * count, pa.binary()),
                "value": pa.array(beside * count if as_keys else records, pa.binary()),
                "topic": pa.array(["topic"] * count),
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array([7] * count, pa.int64()),
                "timestamp": pa.array([1_700_000_001_000_000] * count, pa.timestamp("us", tz="UTC")),
                "headers": pa.array(headers, HEADERS),
            }
        )


@lru_cache(maxsize=256)
def _plans(target: ChangeEvents, *, null_if_out_of_range: bool, drops: bool) -> DecodePlans:
    plans = replace(target.plans, null_if_out_of_range=null_if_out_of_range)
    if not drops:
        return plans
    keys = {column.name for column in plans.columns.key}
    dropped = frozenset([column.name for column in plans.columns.row if column.name not in keys][::2])
    row = tuple(column for column in plans.columns.row if column.name not in dropped)
    return replace(plans, columns=replace(plans.columns, row=row), dropped=dropped)


def envelope() -> ChangeEvents:
    plans = told()
    plans = replace(plans, max_record_bytes=MOST_RECORD_BYTES, schemas=by_both_names(dict(plans.schemas)))
    keys, values = [key_bytes(1), key_bytes(-(2**40))], [value_bytes(each) for each in EVENTS]
    sides = [tuple((int.from_bytes(data[1:5], "big"), data[5:]) for data in some) for some in (keys, values)]
    return ChangeEvents("envelope", plans, *sides)


def captured() -> list[ChangeEvents]:
    found = []
    for topic in topics():
        if topic.profile == "late" or topic.relation == "nested":
            continue  # their schemas are those of `precise` and `arrays`
        plans = topic.plans()
        sides = [tuple(dict.fromkeys(topic.frames(side))) for side in ("key", "value")]
        used = {number: topic.schemas[number] for side in sides for number, _ in side}
        plans = replace(plans, max_record_bytes=MOST_RECORD_BYTES, schemas=by_both_names(used))
        found.append(ChangeEvents(topic.name, plans, *sides))
    return found
