"""What must hold of a lake after a run (`guarantees` §3, I1 to I6), looked at without a JVM."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from cases.rows import told_bronze, told_silver  # type: ignore[import-not-found]
from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.repair.replacement import DECISION as REPAIRED
from crash.broker import PIPELINE  # type: ignore[import-not-found]
from crash.records import (  # type: ignore[import-not-found]
    CASES,
    Coordinate,
    Row,
    Sent,
    decoded,
    silver_of,
    with_all_columns,
)

_COMMIT = re.compile(r"^(\d{20})\.json$")


@dataclass(frozen=True, slots=True)
class Expected:
    """Of one table, when everything that Kafka shows has arrived."""

    table: str
    bronze: Mapping[Coordinate, Row]
    silver: Mapping[tuple[Any, ...], Row]

    @classmethod
    def of(cls, table: str, sent: Sequence[Sent]) -> Expected:
        bronze = decoded(table, sent)
        return cls(table, bronze, silver_of(bronze, table=table))


@dataclass(slots=True)
class Findings:
    """Counts of what must not be, with a sentence for each."""

    lost: int = 0
    duplicated: int = 0
    half_written: int = 0
    stuck: int = 0
    """Runs that a person would have to look at, or that said something untrue (I6)."""
    sentences: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.half_written or self.stuck)

    def add(self, kind: str, count: int, sentence: str) -> None:
        if count:
            setattr(self, kind, getattr(self, kind) + count)
            self.sentences.append(f"{kind} {count}: {sentence}")

    def include(self, other: Findings, *, where: str) -> None:
        for kind in ("lost", "duplicated", "half_written", "stuck"):
            setattr(self, kind, getattr(self, kind) + getattr(other, kind))
        self.sentences += [f"{where}: {sentence}" for sentence in other.sentences]


def examine(root: Path, expected: Expected) -> Findings:
    """The table as it stands; everything must have arrived."""
    found = Findings()
    lake = Lake(root=root.as_uri(), pipeline=PIPELINE)
    bronze, silver = lake.bronze(expected.table), lake.silver(expected.table)
    if newest_snapshot(bronze) is None or newest_snapshot(silver) is None:
        found.add("lost", len(expected.bronze), f"{expected.table} has no table")
        return found
    _bronze(found, bronze, expected)
    _silver(found, silver, expected)
    for uri in (bronze, silver):
        _versions(found, uri)
        _ledgers(found, uri)
    return found


def _bronze(found: Findings, uri: str, expected: Expected) -> None:
    """I1 and I2: each visible record once, with the content that it was sent with."""
    case = CASES[expected.table]
    seen: Counter[Coordinate] = Counter()
    for row in _rows(uri):
        at = (row["topic"], row["partition"], row["offset"])
        seen[at] += 1
        wanted = expected.bronze.get(at)
        sides = {side: with_all_columns(row[side], expected.table) for side in ("before", "after")}
        if wanted is None:
            found.add("half_written", 1, f"{at} is no record that consumers see")
        elif told_bronze(case, {**row, **sides}) != wanted:
            found.add("half_written", 1, f"{at} is not what was sent")
    missing = sorted(expected.bronze.keys() - seen.keys())
    found.add("lost", len(missing), f"bronze lacks {missing[:5]}")
    twice = sorted(at for at, count in seen.items() if count > 1)
    found.add("duplicated", sum(seen[at] - 1 for at in twice), f"bronze has {twice[:5]} more than once")


def _rows(uri: str) -> list[Row]:
    table = read_rows(uri)
    return [] if table is None else list(table.to_pylist())


def _silver(found: Findings, uri: str, expected: Expected) -> None:
    """I2 and I3: one row per key, as the oracle has it."""
    case = CASES[expected.table]
    rows = [told_silver(case, with_all_columns(row, expected.table)) for row in _rows(uri)]
    keys = Counter((row["id"],) for row in rows)
    found.add("duplicated", sum(count - 1 for count in keys.values()), f"{uri}: keys more than once")
    missing = expected.silver.keys() - keys.keys()
    found.add("lost", len(missing), f"silver lacks {sorted(missing)[:5]}")
    for row in rows:
        wanted = expected.silver.get((row["id"],))
        if wanted is None:
            found.add("half_written", 1, f"silver has {row['id']}, which is deleted")
        elif with_all_columns(wanted, expected.table) != row:
            found.add("half_written", 1, f"silver has {row}, the oracle {wanted}")


def _versions(found: Findings, uri: str) -> None:
    """I4: every version that the log still has opens."""
    newest = DeltaTable(uri).version()
    for version in range(newest + 1):
        try:
            DeltaTable(uri, version=version).file_uris()
        except Exception as exc:  # noqa: BLE001 - whatever a reader trips over counts
            found.add("half_written", 1, f"{uri} version {version} does not open: {exc}")


def _ledgers(found: Findings, uri: str) -> None:
    """I5: steps follow each other, and each begins where the one before ended, or where a repair put it."""
    ends: dict[tuple[str, int], int] = {}
    for place, ledger in enumerate(ledgers(uri), 1):
        if ledger.seq != place:
            found.add("half_written", 1, f"{uri}: step {ledger.seq} is the {place}. of its table")
        if REPAIRED in ledger.decisions:
            ends = {
                (source, partition): progress.end
                for source, progresses in ledger.sources.items()
                for partition, progress in progresses.items()
            }
        for source, partitions in ledger.added.items():
            for partition, (start, end) in partitions.items():
                if ends.get((source, partition), start) != start:
                    found.add("half_written", 1, f"{uri}: step {ledger.seq} begins at {start} of {partition}")
                ends[source, partition] = end


def ledgers(uri: str) -> Iterator[Ledger]:
    for _, ledger in _commits(uri):
        if ledger is not None:
            yield ledger


def _commits(uri: str) -> Iterator[tuple[int, Ledger | None]]:
    folder = Path(uri.removeprefix("file://")) / "_delta_log"
    for path in sorted(folder.iterdir()):
        if (named := _COMMIT.match(path.name)) is None:
            continue
        for line in path.read_bytes().splitlines():
            info = json.loads(line).get("commitInfo")
            if info is not None:
                yield int(named[1]), Ledger.from_json(info.get("userMetadata") or "", table="")


def untrue(root: Path, results: Sequence[Mapping[str, Any]]) -> Findings:
    """What a result says it committed, its attempt must have committed."""
    found = Findings()
    lake = Lake(root=root.as_uri(), pipeline=PIPELINE)
    layers = {
        Job.BRONZE_INGEST: ("bronze", lake.bronze),
        Job.QUARANTINE_REPLAY: ("bronze", lake.bronze),
        Job.SILVER_MERGE: ("silver", lake.silver),
    }
    for result in results:
        if result["job"] not in layers:
            continue
        layer, uri_of = layers[result["job"]]
        for table in result["tables"]:
            if table["status"] != "advanced":
                continue
            told = table["versions"][layer]
            ours = [each for version, each in _commits(uri_of(table["table"])) if each and version <= told]
            ledger = ours[-1] if ours else None  # maintenance may have come upon it before the run looked
            if ledger is None or ledger.attempt != result["attempt"]:
                found.add("stuck", 1, f"{table['table']} {result['job']} says that it advanced and did not")
    return found
