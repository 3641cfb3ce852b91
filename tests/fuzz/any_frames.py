"""Frames of any schemas as a target: what `decode_frames` gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isnan
from typing import Any

import pyarrow as pa
from avro_typed_expected import Expected, read_by_fastavro  # type: ignore[import-not-found]
from debezium_records import payload  # type: ignore[import-not-found]

from cdc_lakehouse.avro import decode as decoding
from cdc_lakehouse.avro.decode import FramePlans
from fuzz.batches import (  # type: ignore[import-not-found]
    MOST_RECORD_BYTES,
    by_both_names,
    frames,
    require_alike,
    sown,
)
from fuzz.inputs import Input, Option  # type: ignore[import-not-found]
from fuzz.oracles import Disagreement, require_fastavro  # type: ignore[import-not-found]
from fuzz.typed_schemas import (  # type: ignore[import-not-found]
    EXPANDING,
    EXPANDING_VALUES,
    LOGICAL,
    LOGICAL_VALUES,
    NESTED,
    NESTED_VALUES,
    NEW,
    NEW_VALUE,
    OLD,
    OLD_VALUE,
    OTHER,
    OTHER_VALUE,
    RECURSIVE,
    RECURSIVE_VALUES,
    TYPED,
    TYPED_VALUES,
)


@dataclass(frozen=True, eq=False)
class Frames:
    """Records of any schemas, through `decode_frames`."""

    name: str
    schemas: dict[int, Any]
    values: tuple[tuple[int, Any], ...]
    tells_values: bool = False
    """Whether `avro_typed_shapes` can say what comes out."""

    def seeds(self, choices: Sequence[Option]) -> list[bytes]:
        payloads = [
            (number, value if isinstance(value, bytes) else payload(self.schemas[number], value))
            for number, value in self.values
        ]
        return [data for options in choices for data in sown(self.name, payloads, options)]

    def check(self, case: Input) -> None:
        sent = frames(case, sorted(self.schemas))
        plans = _frame_plans(self, drops=Option.DROPPED in case.options)
        columns = {"frame": pa.array([data for data, _ in sent], pa.binary())}
        if Option.HEADER in case.options:
            columns["id_header"] = pa.array([header for _, header in sent], pa.binary())
        batch = pa.record_batch(columns)
        decoded = require_alike(
            lambda some: decoding.decode_frames(some, plans), decoding, batch, case.options
        )
        for row, (data, header) in enumerate(sent):
            taken = None if data is None else require_fastavro(plans.schemas, data, header, same=None)
            if taken is not None and self.tells_values and not isinstance(decoded, str):
                _require_value(decoded.slice(row, 1), json.loads(plans.schemas[taken[0]]), taken[1])


def _require_value(row: pa.RecordBatch, schema: Any, data: bytes) -> None:
    if row.column("error")[0].is_valid:
        return  # sound bytes, but a value that its type cannot hold
    try:
        read = read_by_fastavro(schema, data)
    except Exception:  # noqa: BLE001 - its conversions have other limits and raise whatever comes
        return
    wanted, value = Expected(schema).of(read), row.column("value")[0].as_py()
    wanted = {name: wanted[name] for name in value}
    if _comparable(_loaded(value, wanted)) != _comparable(wanted):
        raise Disagreement(f"{value!r}, but fastavro reads {wanted!r}"[:4000])


def _loaded(value: Any, expected: Any) -> Any:
    """JSON texts loaded where JSON is expected."""
    if isinstance(value, str) and isinstance(expected, dict):
        return json.loads(value)
    if isinstance(value, dict) and isinstance(expected, dict):
        return {name: _loaded(each, expected.get(name)) for name, each in value.items()}
    if isinstance(value, (list, tuple)) and isinstance(expected, (list, tuple)):
        return type(value)(map(_loaded, value, expected))
    return value


def _comparable(value: Any) -> Any:
    """A NaN equals another one."""
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_comparable, value))
    return "NaN" if isinstance(value, float) and isnan(value) else value


@lru_cache(maxsize=64)
def _frame_plans(target: Frames, *, drops: bool) -> FramePlans:
    texts = by_both_names({number: json.dumps(schema) for number, schema in target.schemas.items()})
    fields = [field["name"] for schema in target.schemas.values() for field in schema["fields"]]
    wanted = tuple(dict.fromkeys(fields))[::2]
    return FramePlans.of(texts, fields=wanted if drops else None, max_record_bytes=MOST_RECORD_BYTES)


def _single(name: str, schema: Any, values: Sequence[Any], *, tells_values: bool) -> Frames:
    return Frames(name, {1: schema}, tuple((1, value) for value in values), tells_values)


def made() -> list[Frames]:
    return [
        _single("logical", LOGICAL, LOGICAL_VALUES, tells_values=True),
        _single("typed", TYPED, TYPED_VALUES, tells_values=True),
        _single("nested", NESTED, NESTED_VALUES, tells_values=False),
        _single("expanding", EXPANDING, EXPANDING_VALUES, tells_values=False),
        _single("recursive", RECURSIVE, RECURSIVE_VALUES, tells_values=False),
        Frames(
            "versions", {1: OLD, 2: NEW, 3: OTHER}, ((1, OLD_VALUE), (2, NEW_VALUE), (3, OTHER_VALUE)) * 2
        ),
    ]
