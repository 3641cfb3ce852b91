"""The repairs of the tier: lakes on which each one is planned, and what must hold once it is carried out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
from deltalake import DeltaTable

from cases.rows import told_history  # type: ignore[import-not-found]
from cdc_lakehouse.contract import ExitCode, Job
from cdc_lakehouse.debezium.operations import ERASED
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.quarantine import listed_cases
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.run_modes import RepairStep
from crash.broker import PIPELINE  # type: ignore[import-not-found]
from crash.driver import ONE_BATCH, Results, WarmDriver  # type: ignore[import-not-found]
from crash.golden import Golden  # type: ignore[import-not-found]
from crash.invariants import Expected, Findings  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import CASES, PARTITIONS, history_of, with_all_columns  # type: ignore[import-not-found]
from crash.replay import Bench  # type: ignore[import-not-found]

TABLE = "orders"
SETTINGS: Mapping[str, Any] = {"history": [TABLE], "max_offsets": ONE_BATCH}
"""Of every order of these lakes: the table keeps a history, so that a repair has more commits."""
_ERASED_KEYS = (0, 1)
"""One that silver has, and one that was deleted and has an undecodable record."""
_EMPTIED = ("key", "before", "after", "unavailable", "headers", "error", "raw_key", "raw_value")
Contents = Mapping[str, Sequence[str] | None]
"""Delta table -> what a reader finds in it, in one order; None where there is no table."""


class End(StrEnum):
    """What a repair leaves when the pipeline has run behind it."""

    RIGHT = "right"
    """All tables hold what the source says."""
    ERASED = "erased"
    CLOSED = "closed"
    """Right, and cases are closed."""
    ARCHIVED = "archived"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair whose plan lies in a lake."""

    name: str
    job: Job
    digest: str
    end: End
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        return cls(**{**document, "job": Job(document["job"]), "end": End(document["end"])})

    @property
    def is_left_out(self) -> bool:
        """Return whether the pipeline file has not the table any more."""
        return self.job is Job.RETIRE

    @property
    def tables_behind(self) -> tuple[str, ...]:
        """Return the tables that the pipeline reads once the repair is carried out."""
        is_gone = self.end in (End.ARCHIVED, End.REMOVED)
        return tuple(name for name in PARTITIONS if name != TABLE) if is_gone else (TABLE,)

    def order(self, step: RepairStep) -> dict[str, Any]:
        """Return what a driver is told to take a step."""
        plans = [f"{TABLE}={self.digest}"] if self.digest else []
        left_out = [TABLE] if self.is_left_out else []
        return {
            **SETTINGS,
            "tables": [TABLE],
            "step": step,
            "plans": plans,
            "options": dict(self.options),
            "left_out": left_out,
        }


@dataclass(frozen=True, slots=True)
class Planned:
    repair: Repair
    storage: Storage
    """Of the lake, with the record of the plan in it."""


def planned_repairs(bench: Bench, golden: Golden) -> Iterator[Planned]:
    """Plan each kind of repair, but for the resync, which needs a connector."""
    makers = _Makers(bench, golden)
    yield makers.planned("rebuild", Job.REBUILD, makers.spoilt())
    behind = makers.planned("rebuild", Job.REBUILD, makers.behind)
    yield makers.planned(
        "undo of a rebuild", Job.REBUILD, makers.carried_out(behind), undo=behind.repair.digest
    )
    for layer, version in (("silver", makers.silver_then), ("bronze", makers.bronze_then)):
        yield makers.planned(
            f"rewind of {layer}", Job.REWIND, makers.whole, layer=layer, to_version=str(version)
        )
    keys = "\n".join(json.dumps({"id": key}) for key in _ERASED_KEYS)
    yield makers.planned("erase", Job.ERASE, makers.behind, End.ERASED, keys=keys)
    archived = makers.planned("archive", Job.RETIRE, makers.whole, End.ARCHIVED, what="archive")
    yield archived
    yield makers.planned(
        "undo of an archive", Job.RETIRE, makers.carried_out(archived), undo=archived.repair.digest
    )
    yield makers.planned("remove", Job.RETIRE, makers.whole, End.REMOVED, what="remove")
    yield makers.planned(
        "close of cases", Job.QUARANTINE_REPAIR, makers.behind, End.CLOSED, do="close", cases=makers.cases()
    )


class _Makers:
    """Makes lakes in which the table has a history and bronze has both rounds.

    Where silver has applied the first one only, the schedule has a merge to do beside the repair.
    """

    def __init__(self, bench: Bench, golden: Golden) -> None:
        self._bench = bench
        lake = bench.lake(_without_silver(golden.after_first_round()))
        self._run(lake, Job.SILVER_MERGE)
        self.silver_then, self.bronze_then = (
            DeltaTable(str(lake / layer / PIPELINE / TABLE)).version() for layer in ("silver", "bronze")
        )
        self._run(lake, Job.BRONZE_INGEST)
        self.behind = Storage.of(lake)
        self._run(lake, Job.SILVER_MERGE)
        self.whole = Storage.of(lake)
        self._lake = lake

    def spoilt(self) -> Storage:
        """Return a lake in which somebody has changed rows of silver and its history by hand."""
        lake = self._bench.lake(self.behind)
        silver, history = (
            f"{lake.as_uri()}/silver/{PIPELINE}/{name}" for name in (TABLE, f"{TABLE}__history")
        )
        statements = [
            f"UPDATE delta.`{silver}` SET note = 'spoilt' WHERE id = 0",
            f"DELETE FROM delta.`{silver}` WHERE id = 2",
            f"DELETE FROM delta.`{history}` WHERE id = 2",
        ]
        self._bench.driver.run(lake, sql=statements)
        return Storage.of(lake)

    def cases(self) -> str:
        """Return the undecodable records of one partition, as the form of the repair names them."""
        listed = listed_cases(_lake_at(self._lake).bronze(TABLE))
        places = sorted((case.topic, case.partition, case.offset) for case in listed if case.partition == 0)
        return "\n".join(f"{TABLE}={topic}/{partition}@{offset}" for topic, partition, offset in places)

    def planned(
        self, name: str, job: Job, storage: Storage, end: End = End.RIGHT, /, **options: str
    ) -> Planned:
        lake, asked = self._bench.lake(storage), Repair(name, job, "", end, options)
        ((table,),) = [
            result["tables"] for result in step_of(self._bench.driver, lake, asked, RepairStep.PLAN)
        ]
        if table["error"] is not None:
            raise RuntimeError(f"{name} cannot be planned: {table['error']}")
        return Planned(replace(asked, digest=table["plan"]["digest"]), Storage.of(lake))

    def carried_out(self, planned: Planned) -> Storage:
        lake = self._bench.lake(planned.storage)
        for step in (RepairStep.ACT, RepairStep.VERIFY):
            require_green(step_of(self._bench.driver, lake, planned.repair, step))
        return Storage.of(lake)

    def _run(self, lake: Path, job: Job) -> None:
        require_green(self._bench.driver.run(lake, job, tables=[TABLE], **SETTINGS))


def _without_silver(storage: Storage) -> Storage:
    """Return a lake whose next merge makes silver of the table, with a history."""

    def is_silver(path: str) -> bool:
        name = path.removeprefix(f"silver/{PIPELINE}/").partition("/")[0]
        return path.startswith(f"silver/{PIPELINE}/") and name in (TABLE, f"{TABLE}__tombstones")

    folders = frozenset(path for path in storage.folders if not is_silver(path))
    return Storage({path: data for path, data in storage.files.items() if not is_silver(path)}, folders)


def step_of(driver: WarmDriver, lake: Path, repair: Repair, step: RepairStep) -> Results:
    results: Results = driver.run(lake, repair.job, **repair.order(step))
    return results


def require_green(results: Results) -> None:
    failed = [result for result in results if result["exit_code"] != ExitCode.DONE]
    if failed:
        raise RuntimeError(f"a lake to be repaired cannot be made: {failed}")


def _lake_at(root: Path) -> Lake:
    return Lake(root=root.as_uri(), pipeline=PIPELINE)


def contents_of(root: Path) -> Contents:
    """Return what a reader finds in each Delta table of the lake as it stands."""
    folders = [root / layer / PIPELINE for layer in ("bronze", "silver")]
    tables = [path for folder in folders if folder.exists() for path in sorted(folder.iterdir())]
    return {str(table.relative_to(root)): _rows_of(table) for table in tables}


def _rows_of(table: Path) -> Sequence[str] | None:
    rows = read_rows(table.as_uri())
    return None if rows is None else sorted(map(repr, rows.to_pylist()))


def half_done(root: Path, *, before: Contents, after: Contents) -> Findings:
    """Find tables that a reader has neither as they were nor as the repair makes them.

    Tombstones may be those of both: more of them do no harm.
    """
    found = Findings()
    for name in sorted({*before, *after}):
        then, later = before.get(name), after.get(name)
        allowed = [then, later]
        if name.endswith("__tombstones"):
            allowed.append(sorted([*(then or ()), *(later or ())]))
        try:
            now = _rows_of(root / name)
        except Exception as exc:  # noqa: BLE001 - whatever a reader trips over
            # A table that is being deleted may not open any more; it must not open with some of its rows.
            found.add("half_written", later is not None, f"{name} does not open: {exc}")
            continue
        count = 0 if now in allowed else len(set(now or ()) ^ set(then or ())) or 1
        found.add("half_written", count, f"{name} is neither as before nor as after")
    return found


def ended(bench: Bench, lake: Path, repair: Repair, *, planned: Contents) -> Findings:
    """Find what is not as the repair must leave it, when the pipeline has run behind it."""
    root = bench.seen(lake)
    match repair.end:
        case End.ARCHIVED | End.REMOVED:
            return _gone(root, repair, planned)
        case End.ERASED:
            return _erased(root, bench.expected(TABLE))
        case End.CLOSED:
            return _closed(root, repair)
        case End.RIGHT:
            return _history(root, bench.expected(TABLE))


def expected_behind(bench: Bench, repair: Repair) -> dict[str, Expected]:
    """Return what the tables hold that the pipeline reads then, where it is not what was sent."""
    return {TABLE: without_erased(bench.expected(TABLE))} if repair.end is End.ERASED else {}


def without_erased(expected: Expected) -> Expected:
    """Return the rows of a table whose keys were erased: bronze keeps coordinates and places."""
    emptied = {"op": ERASED, **dict.fromkeys(_EMPTIED)}
    bronze = {
        at: {**row, **emptied} if (row["key"] or {}).get("id") in _ERASED_KEYS else row
        for at, row in expected.bronze.items()
    }
    silver = {key: row for key, row in expected.silver.items() if key[0] not in _ERASED_KEYS}
    return replace(expected, bronze=bronze, silver=silver)


def _gone(root: Path, repair: Repair, planned: Contents) -> Findings:
    """The table is nowhere; what was archived is whole."""
    found, lake = Findings(), _lake_at(root)
    live = {"bronze": lake.bronze(TABLE), "silver": lake.silver(TABLE)}
    live |= {"history": lake.history(TABLE), "tombstones": lake.tombstones(TABLE)}
    for name, uri in live.items():
        path = Path(uri.removeprefix("file://"))
        left = sum(each.is_file() for each in path.rglob("*"))
        found.add("half_written", left, f"{name} has {left} file(s) left")
        if repair.end is End.ARCHIVED:
            moved = Path(lake.archive(TABLE).removeprefix("file://")) / repair.digest / name
            then = planned.get(str(path.relative_to(root)))
            found.add("lost", _rows_of(moved) != then, f"the archive has not {name} as it was")
    return found


def _erased(root: Path, expected: Expected) -> Findings:
    """The erased keys are nowhere: neither in rows nor behind deletion vectors of the newest files."""
    found, lake = _history(root, without_erased(expected)), _lake_at(root)
    for uri in (lake.silver(TABLE), lake.history(TABLE), lake.tombstones(TABLE)):
        snapshot = newest_snapshot(uri)
        folder = Path(uri.removeprefix("file://"))
        for file in () if snapshot is None else snapshot.files:
            ids = set(pq.read_table(folder / file.path, columns=["id"])["id"].to_pylist())
            kept = sorted(ids & {*_ERASED_KEYS})
            found.add("half_written", len(kept), f"{uri}/{file.path} holds erased keys {kept}")
    found.add("half_written", any((root / "_ops" / PIPELINE).glob(f"shadows/{TABLE}/*/*")), "a copy is left")
    return found


def _closed(root: Path, repair: Repair) -> Findings:
    """The cases that were named are closed, and no others."""
    found = Findings()
    named = {line.partition("=")[2] for line in repair.options["cases"].splitlines()}
    closed = {
        f"{case.topic}/{case.partition}@{case.offset}"
        for case in listed_cases(_lake_at(root).bronze(TABLE))
        if case.closed is not None
    }
    found.add("stuck", len(named ^ closed), f"closed are {sorted(closed)}, named {sorted(named)}")
    return found


def _history(root: Path, expected: Expected) -> Findings:
    """The history is what the oracle makes of bronze."""
    found, case = Findings(), CASES[TABLE]
    rows = read_rows(_lake_at(root).history(TABLE))
    versions = [] if rows is None else rows.to_pylist()
    live = sorted(repr(told_history(case, with_all_columns(row, TABLE))) for row in versions)
    # Of a record whose values were erased nobody can tell a version.
    known = {at: row for at, row in expected.bronze.items() if row["op"] != ERASED}
    wanted = sorted(
        repr(told_history(case, with_all_columns(row, TABLE))) for row in history_of(known, table=TABLE)
    )
    missing, strange = set(wanted) - set(live), set(live) - set(wanted)
    found.add("lost", len(missing), f"the history lacks {sorted(missing)[:2]}")
    found.add("half_written", len(strange), f"the history has {sorted(strange)[:2]}")
    found.add("duplicated", len(live) - len(set(live)), "the history has versions twice")
    return found
