"""Every variant must have read the same before its time counts: row by row, against fastavro."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from bench.variants import VARIANTS  # type: ignore[import-not-found]
from bench.workloads import Workload, batches  # type: ignore[import-not-found]

_EPOCH = date(1970, 1, 1)
_CONVERTED_BY_US = frozenset({"changed_at"})
"""An instant for us, a text for the others."""


class WrongRowError(Exception):
    """A variant reads something else than fastavro does."""


def verify(workload: Workload, records: list[tuple[bytes, bytes]]) -> None:
    """Raises for the first row that differs."""
    batch = next(batches(records))
    ours, confluent, plain = (variant.prepare(workload)(batch) for variant in VARIANTS)
    for number, (row, theirs, expected) in enumerate(zip(_told(ours), confluent, plain, strict=True)):
        if theirs != expected or row != _essence(*expected):
            raise WrongRowError(f"{workload.name}: row {number} differs from fastavro's")


def _told(batch: pa.RecordBatch) -> list[Any]:
    return [
        (row["op"], row["key"], _values(row["after"]), row["position"]["row"], row["decode_error"])
        for row in batch.to_pylist()
    ]


def _essence(key: dict[str, Any], value: dict[str, Any]) -> Any:
    return value["op"], key, _values(value["after"]), value["source"]["lsn"], None


def _values(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    values = {name: value for name, value in row.items() if name not in _CONVERTED_BY_US}
    days = values.get("placed_on")
    return {**values, "placed_on": _EPOCH + timedelta(days)} if isinstance(days, int) else values
