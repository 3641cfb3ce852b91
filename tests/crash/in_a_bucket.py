"""The proof with the lakes in a bucket: a whole course, states, kills, zombies, two drivers at once."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from artifacts.errors import DownloadError
from artifacts.fetch import fetch
from artifacts.lock import read_lock, select_groups
from cdc_lakehouse.contract import Job
from crash.broker import PIPELINE, SETTINGS, SMALL_BATCHES  # type: ignore[import-not-found]
from crash.driver import Results, WarmDriver  # type: ignore[import-not-found]
from crash.golden import Golden, run_golden  # type: ignore[import-not-found]
from crash.invariants import Findings, examine  # type: ignore[import-not-found]
from crash.kills import (  # type: ignore[import-not-found]
    Met,
    Victim,
    at_once,
    driver_of,
    healed,
    killed,
    zombies,
)
from crash.mutations import Kind, Mutation, Storage  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]
from crash.replay import Bench  # type: ignore[import-not-found]
from crash.states import State, Work, files_of, key  # type: ignore[import-not-found]
from crash.stores import bucket  # type: ignore[import-not-found]

_GROUP = "spark-s3"
_SETTINGS = {**SETTINGS, "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1"}
_TABLES = (f"bronze/{PIPELINE}/", f"silver/{PIPELINE}/")
_PATIENCE = 600.0


class NotHereError(RuntimeError):
    """This machine cannot carry a step out; its sentence says why."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of it; a bucket answers more slowly than a disk."""

    states: int = 20
    kills: int = 8
    before_commit: int = 4
    """Kills of drivers whose files are written and whose commit is not."""
    zombies: int = 8
    pairs: int = 6


@contextmanager
def bench_in_a_bucket(bench: Bench) -> Iterator[Bench]:
    """The same broker and the same records, and drivers whose lakes lie in a bucket."""
    try:
        fetch(select_groups(read_lock(), (_GROUP,)))
    except DownloadError as exc:
        raise NotHereError(f"nothing was tried in a bucket: {exc}") from exc
    folder = bench.world.folder / "bucket"
    folder.mkdir(exist_ok=True)
    with bucket(folder / "stack", settings=_SETTINGS) as store:
        world = replace(bench.world, store=store)
        with WarmDriver(world, "warm-s3", stays=True) as driver:
            yield Bench(world, driver.ready())


def course(bench: Bench, golden: Golden, share: Share, *, seed: int) -> tuple[Findings, dict[str, int]]:
    """The findings, and how much of what there was."""
    within = golden_in_a_bucket(golden)
    found, kills = Findings(), Met()
    found.include(whole_course(bench), where="whole course")
    work = sampled(within, count=share.states, seed=seed)
    found.include(bench.run_states(work), where="state")
    for met in (
        killed(bench, within, kills=share.kills, seed=seed),
        killed_before_their_commit(bench, within, kills=share.before_commit),
    ):
        kills.count, kills.signals = kills.count + met.count, kills.signals + met.signals
        found.include(met.findings, where="kill")
    with driver_of(bench, "other-s3") as driver:
        stopped = zombies(bench, within, driver.ready(), zombies=share.zombies, seed=seed)
        pairs = at_once(bench, within, driver, pairs=share.pairs, seed=seed)
    found.include(stopped.findings, where="zombie")
    found.include(pairs.findings, where="pair")
    signals = kills.signals + stopped.signals
    counts = {"states": len(work), "kills": kills.count, "zombies": stopped.count, "pairs": pairs.count}
    return found, {**counts, "signals": signals}


def whole_course(bench: Bench) -> Findings:
    """Ingest, merge, replay, merge, OPTIMIZE and VACUUM, all green."""
    lake, found = bench.lake(Storage()), Findings()
    found.include(bench.untrue(lake, run_golden(bench.world, bench.driver, lake)), where="results")
    for table in PARTITIONS:
        found.include(examine(bench.seen(lake), bench.expected(table)), where=table)
    return found


def killed_before_their_commit(bench: Bench, golden: Golden, *, kills: int) -> Met:
    """The files of a batch lie in the bucket, and no version names them."""
    met = Met(signals=1)
    with driver_of(bench, "held-s3") as driver:
        driver.ready()
        runs = [_held(bench, golden, driver, table) for table in _in_turn(tuple(PARTITIONS), kills)]
        for victim in runs:
            pause = victim.lake.with_suffix(".pause")
            _until_reached(pause.with_suffix(".reached"), victim.run)
        met.count = sum(not victim.run.done() for victim in runs)
        driver.kill()
    for victim in runs:
        if not unnamed(Storage.of(bench.seen(victim.lake))):
            raise RuntimeError(f"{victim.lake.name} was to be killed between files and commit")
    met.findings.include(healed(bench, runs, what="killed before its commit"), where="kill")
    return met


def _held(bench: Bench, golden: Golden, driver: WarmDriver, table: str) -> Victim:
    lake = bench.lake(golden.after_first_round())
    pause = lake.with_suffix(".pause")
    pause.touch()
    run = driver.order(lake, Job.BRONZE_INGEST, max_offsets=SMALL_BATCHES, tables=[table], pause=str(pause))
    return Victim(lake, (table,), run)


def _in_turn(tables: Sequence[str], count: int) -> list[str]:
    return [tables[number % len(tables)] for number in range(count)]


def _until_reached(marker: Path, run: Future[Results]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not marker.exists():
        if run.done() or time.monotonic() > deadline:
            raise RuntimeError(f"no commit was reached: {marker}")
        time.sleep(0.02)


def golden_in_a_bucket(golden: Golden) -> Golden:
    """Its states as a bucket can hold them: an object appears whole, and Hadoop keeps no checksums there."""
    found: list[Storage] = []
    next_change: dict[str, Kind] = {}
    for place in range(len(golden.states) - 1, -1, -1):
        if place < len(golden.mutations):
            _told(golden.mutations[place], next_change)
        found.append(golden.states[place].without(lambda path: not _is_object(path, next_change)))
    return replace(golden, states=found[::-1])


def _told(mutation: Mutation, next_change: dict[str, Kind]) -> None:
    next_change[mutation.path] = mutation.kind
    if mutation.to:
        next_change[mutation.to] = mutation.kind


def _is_object(path: str, next_change: dict[str, Kind]) -> bool:
    is_open = next_change.get(path) in (Kind.WRITE, Kind.CUT)
    return not is_open and not path.rpartition("/")[2].startswith(".")


def sampled(golden: Golden, *, count: int, seed: int) -> list[Work]:
    """States that differ to a run; two thirds of them have files of data that no version names yet."""
    known: set[str] = set()
    between: list[Work] = []
    others: list[Work] = []
    for place, storage in enumerate(golden.states):
        told = "".join(key(storage, table) for table in PARTITIONS) + "".join(sorted(unnamed(storage)))
        if told in known:
            continue
        known.add(told)
        work = Work(State(f"{place} in a bucket", "in a bucket", storage), tuple(PARTITIONS))
        (between if unnamed(storage) else others).append(work)
    chance = random.Random(seed)
    preferred = chance.sample(between, min(len(between), 2 * count // 3))
    return preferred + chance.sample(others, min(len(others), count - len(preferred)))


def unnamed(storage: Storage) -> frozenset[str]:
    """Files of data that no version of their table names."""
    named: set[str] = set()
    data: set[str] = set()
    for path, content in storage.files.items():
        folder, log, _name = path.partition("/_delta_log/")
        if not path.startswith(_TABLES):
            continue
        if log and path.endswith(".json"):
            _, added = files_of(content)
            named |= {f"{folder}/{file}" for file in added}
        elif path.endswith(".parquet") and not log:
            data.add(path)
    return frozenset(data - named)
