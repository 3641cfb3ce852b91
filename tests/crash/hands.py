"""What people and networks do: lost answers, tables restored by hand, folders brought back from a copy."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from cdc_lakehouse.contract import ExitCode, Job
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import read_state
from crash.broker import FEW_BATCHES, PIPELINE  # type: ignore[import-not-found]
from crash.driver import INGEST_AND_MERGE, REPLAY_AND_MERGE  # type: ignore[import-not-found]
from crash.golden import Golden  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]
from crash.replay import AT_ONCE, Bench  # type: ignore[import-not-found]
from crash.states import State, Work  # type: ignore[import-not-found]


@dataclass(frozen=True, slots=True)
class Lost:
    happened: bool
    """False when the run made fewer commits."""
    is_merge: bool
    """The run made no other behind it, and silver's step is stated."""
    findings: Findings


def lost_answer(
    bench: Bench,
    *,
    commit: int,
    start: Storage | None = None,
    jobs: Sequence[Job] = INGEST_AND_MERGE,
    guards_off: Sequence[str] = (),
) -> Lost:
    """The run whose commit happened without its knowledge goes on, green, and says the truth.

    But for what states no step: a table's columns, tombstones. The next run makes it again.
    """
    lake = bench.lake(start or Storage())
    marker = lake.with_suffix(".lost")
    found = Findings()
    results = bench.driver.run(
        lake, *jobs, max_offsets=FEW_BATCHES, lose_answers=[commit], tables=["orders"],
        guards_off=guards_off, lost=str(marker),
    )  # fmt: skip
    found.include(bench.untrue(lake, results), where=f"answer {commit} lost")
    seen = Lake(root=bench.seen(lake).as_uri(), pipeline=PIPELINE)
    for result in results:
        if result["exit_code"] != ExitCode.DONE and not _may_be_red(seen, result):
            found.add("stuck", 1, f"exit code {result['exit_code']} of {result['job']}: {_errors(result)}")
    merge = results[-1]
    is_merge = merge["commits"] == commit and _has_merged(seen, "orders", merge["attempt"])
    found.include(bench.heal(lake, "orders"), where=f"answer {commit} lost")
    return Lost(marker.exists(), is_merge, found)


def _may_be_red(lake: Lake, result: Mapping[str, Any]) -> bool:
    """Whether no step of a table that failed is stated, and its merge is worth another try."""
    is_merge = result["job"] == Job.SILVER_MERGE and result["error"] is None
    return is_merge and all(
        table["error"]["exit_code"] == ExitCode.RETRY
        and not _has_merged(lake, table["table"], result["attempt"])
        for table in result["tables"]
        if table["error"] is not None
    )


def _has_merged(lake: Lake, table: str, attempt: str) -> bool:
    """Whether the newest step of silver is that of this attempt."""
    state = read_state(lake.silver(table), table=table)
    return state is not None and state.ledger is not None and state.ledger.attempt == attempt


def _errors(result: Mapping[str, Any]) -> list[str]:
    return [table["error"]["sentence"] for table in result["tables"] if table["error"] is not None]


def every_lost_answer(bench: Bench, golden: Golden) -> tuple[int, Findings]:
    """One run for each commit of a run, until there is none left; how many, and what was found."""
    commits, found = 0, Findings()
    for start, jobs in ((Storage(), INGEST_AND_MERGE), (golden.quarantined(), REPLAY_AND_MERGE)):
        for number, lost in enumerate(_lost_answers(bench, start, jobs), 1):
            commits += 1
            found.include(lost.findings, where=f"commit {number} of {jobs[0]}")
    return commits, found


def _lost_answers(bench: Bench, start: Storage, jobs: Sequence[Job]) -> Iterator[Lost]:
    """In the order of the commits, some tried side by side."""

    def tried(commit: int) -> Lost:
        return lost_answer(bench, commit=commit, start=start, jobs=jobs)

    numbers = count(1)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while True:
            for lost in pool.map(tried, islice(numbers, AT_ONCE)):
                if not lost.happened:
                    return
                yield lost


def restored_by_hand(bench: Bench, golden: Golden, *, layer: str, guards_off: Sequence[str] = ()) -> Findings:
    """RESTORE takes data away behind the ledger's back: the table must stop and say so."""
    lake = bench.lake(golden.before_maintenance())
    uri = f"{lake.as_uri()}/{layer}/{PIPELINE}/orders"
    bench.driver.run(lake, sql=[f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF 2"])
    results = bench.driver.run(lake, *INGEST_AND_MERGE, guards_off=guards_off)
    found = Findings()
    orders = [t for result in results for t in result["tables"] if t["table"] == "orders" and t["error"]]
    if {table["error"]["exit_code"] for table in orders} != {ExitCode.DATA}:
        found.add("lost", 1, f"{layer} of orders was restored by hand and nobody was told: {orders}")
    return found


def brought_back(golden: Golden, *, copies: int, seed: int) -> Iterator[Work]:
    """One layer of one table from an older moment than the rest: a folder copied back from a backup."""
    chance = random.Random(seed)
    for _ in range(copies):
        newer = chance.randrange(1, len(golden.states))
        older, table = chance.randrange(newer), chance.choice(list(PARTITIONS))
        layer = chance.choice(("bronze", "silver"))
        folder = f"{layer}/{PIPELINE}/{table}/"
        copy = {p: data for p, data in golden.states[older].files.items() if p.startswith(folder)}

        def inside(path: str, folder: str = folder) -> bool:
            return path.startswith(folder)

        storage = golden.states[newer].without(inside).with_files(copy)
        yield Work(State(f"{folder} of {older} in {newer}", "folder from a copy", storage), (table,))
