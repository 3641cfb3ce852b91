"""What is measured: which records, decoded by whom, how many per repetition."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from bench.shapes import ARRAYS, NARROW, ORDERS, STRINGS, WIDE  # type: ignore[import-not-found]
from bench.streams import Stream  # type: ignore[import-not-found]

ORDERS_50 = Stream(ORDERS, versions=50)
CORRUPT = Stream(ORDERS, corrupt=0.001)


@dataclass(frozen=True, slots=True)
class Workload:
    """`copies` of a block of different records per repetition, by variant."""

    name: str
    stream: Stream
    block: int
    copies: dict[str, int]
    skipped: dict[str, str] = field(default_factory=dict)
    """Variants that cannot do it, and why."""

    @property
    def part(self) -> str:
        return self.name.split("_")[0]

    def stream_of(self, variant: str) -> Stream:
        """`ours_clean` decodes the same events without what makes the workload hard."""
        return Stream(self.stream.shape) if variant == "ours_clean" else self.stream


_ONE_ID = {"from_avro": "takes one writer schema for all records"}
_NO_BAD = {
    "from_avro": "stops at the first corrupt record, or in PERMISSIVE mode gives null without a reason",
    "baseline": "stops at the first corrupt record",
}


def _with_clean(name: str, stream: Stream, *, block: int, skipped: dict[str, str]) -> Workload:
    copies = {"ours": 10, "ours_clean": 10}
    return Workload(
        name, stream, block, copies if "baseline" in skipped else {"baseline": 1, **copies}, skipped
    )


UDF = (
    Workload(
        "udf_envelope",
        Stream(ORDERS),
        100_000,
        {
            "baseline": 1,
            "fastavro": 2,
            "ours": 10,
            "ours_projected": 10,
            "from_avro": 10,
            "identity": 10,
            "scan": 10,
        },
    ),
    _with_clean("udf_corrupt", CORRUPT, block=50_000, skipped=_NO_BAD),
    _with_clean("udf_ids_2", Stream(ORDERS, versions=2), block=50_000, skipped=_ONE_ID),
    _with_clean("udf_ids_50", ORDERS_50, block=50_000, skipped=_ONE_ID),
    _with_clean("udf_plans_50", Stream(ORDERS, versions=50, plans=True), block=50_000, skipped=_ONE_ID),
    Workload("udf_narrow", Stream(NARROW), 50_000, {"baseline": 1, "ours": 12, "from_avro": 12}),
    Workload("udf_wide", Stream(WIDE), 10_000, {"baseline": 1, "ours": 8, "from_avro": 8}),
    Workload("udf_strings", Stream(STRINGS), 10_000, {"baseline": 2, "ours": 8, "from_avro": 8}),
    Workload("udf_arrays", Stream(ARRAYS), 50_000, {"baseline": 1, "ours": 8, "from_avro": 8}),
)
_DECODERS = {"confluent": 1, "fastavro": 1, "ours": 20}
_BESIDE_CLEAN = {**_DECODERS, "ours_clean": 20}

DECODE = (
    Workload("decode_envelope", Stream(ORDERS), 10_000, {**_DECODERS, "ours_projected": 20}),
    Workload(
        "decode_corrupt",
        CORRUPT,
        10_000,
        {"ours": 20, "ours_clean": 20},
        dict.fromkeys(("confluent", "fastavro"), "stops at the first corrupt record"),
    ),
    Workload("decode_ids_2", Stream(ORDERS, versions=2), 10_000, _BESIDE_CLEAN),
    Workload("decode_ids_50", ORDERS_50, 10_000, _BESIDE_CLEAN),
    Workload("decode_plans_50", Stream(ORDERS, versions=50, plans=True), 10_000, _BESIDE_CLEAN),
    Workload("decode_narrow", Stream(NARROW), 10_000, _DECODERS),
    Workload("decode_wide", Stream(WIDE), 4_000, {**_DECODERS, "ours": 5}),
    Workload("decode_strings", Stream(STRINGS), 4_000, {**_DECODERS, "ours": 10}),
    Workload("decode_arrays", Stream(ARRAYS), 10_000, {**_DECODERS, "ours": 10}),
)
MEMORY = "udf_memory"
DRAIN, LEDGER = "drain_bronze", "drain_ledger"
"""Measured together: they share a broker (`bench.measure_drain`)."""
TABLE_COUNT = 100
TABLES = ("tables_new", "tables_news", "tables_idle", "tables_merge")
"""Rounds over a hundred small tables, each on top of the one before (`bench.measure_tables`)."""


@dataclass(frozen=True, slots=True)
class Merge:
    """So many changes into a table of so many rows (`bench.measure_merge`)."""

    rows: int
    changes: int
    spread: Literal["uniform", "recent"]

    @property
    def name(self) -> str:
        return f"merge_{self.spread}_{_short(self.changes)}_in_{_short(self.rows)}"

    @classmethod
    def named(cls, name: str) -> Merge | None:
        """Of any size: `merge_recent_5k_in_2m`."""
        found = re.fullmatch(r"merge_(uniform|recent)_(\d+)([km])_in_(\d+)([km])", name)
        if found is None:
            return None
        changes, rows = (int(found[at]) * _UNITS[found[at + 1]] for at in (2, 4))
        return cls(rows, changes, "uniform" if found[1] == "uniform" else "recent")


_UNITS = {"k": 1_000, "m": 1_000_000}


def _short(count: int) -> str:
    return f"{count // 1_000_000}m" if count >= 1_000_000 else f"{count // 1_000}k"


SMALL, LARGE = 1_000_000, 20_000_000
MERGES = tuple(
    Merge(rows, changes, spread)
    for rows in (SMALL, LARGE)
    for spread in ("uniform", "recent")
    for changes in (1_000, 10_000, 100_000)
)


def chosen(only: str | None) -> list[str]:
    """Workloads by a part (`udf`, `drain`, `merge`, …), by their own name, or all."""
    parts = {
        "udf": [each.name for each in UDF],
        "decode": [each.name for each in DECODE],
        "memory": [MEMORY],
        "drain": [DRAIN, LEDGER],
        "tables": list(TABLES),
        "merge": [each.name for each in MERGES],
    }
    everything = [name for names in parts.values() for name in names]
    if only is None:
        return everything
    merge = Merge.named(only)
    return parts.get(only) or ([merge.name] if merge else [name for name in everything if name == only])
