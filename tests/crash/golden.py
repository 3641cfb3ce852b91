"""The golden run: two rounds of records, between them the quarantine, then maintenance; recorded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc_lakehouse.contract import Job
from cdc_lakehouse.kafka.cluster import Cluster
from crash.baseline import JOB as BASELINE  # type: ignore[import-not-found]
from crash.broker import (  # type: ignore[import-not-found]
    FEW_BATCHES,
    PIPELINE,
    SMALL_BATCHES,
    World,
    make_known,
    not_yet_known,
    send_round,
)
from crash.driver import (  # type: ignore[import-not-found]
    INGEST_AND_MERGE,
    ONE_BATCH,
    REPLAY_AND_MERGE,
    Results,
    WarmDriver,
)
from crash.identity import Identity  # type: ignore[import-not-found]
from crash.mutations import Mutation, Storage, states_of  # type: ignore[import-not-found]
from crash.recorder import recorded, tracing  # type: ignore[import-not-found]
from crash.recording import Recording  # type: ignore[import-not-found]


@dataclass(frozen=True, slots=True)
class Golden:
    mutations: Sequence[Mutation]
    states: Sequence[Storage]
    """Before the first mutation, and behind each."""
    results: Results
    in_quarantine: int
    """How many mutations were there before the replay."""
    first_round: int
    """How many mutations made it, the replay among them."""
    baseline: Sequence[Mutation]
    """What the usual way did with the same records, in a lake of its own."""
    identity: Identity
    """Of the broker that the ledgers name."""

    def quarantined(self) -> Storage:
        """Silver has applied the first round, but for records that nobody can decode yet."""
        return self.states[self.in_quarantine]

    def after_first_round(self) -> Storage:
        """Silver of every table has applied all of the first round, and nothing of the second is there."""
        return self.states[self.first_round]

    def inside_second_round(self, table: str) -> Storage:
        """Bronze has the first batch of the second round, which silver has not seen."""
        log = f"bronze/{PIPELINE}/{table}/_delta_log/"
        known = {path for path in self.after_first_round().files if path.startswith(log)}
        number = sum(path.endswith(".json") for path in known)
        return next(state for state in self.states if f"{log}{number:020d}.json" in state.files)

    def before_maintenance(self) -> Storage:
        """Both rounds have arrived, and no file has been compacted or deleted."""
        return next(
            state
            for state in reversed(self.states)
            if not any(_OPTIMIZED in data for path, data in state.files.items() if "/_delta_log/" in path)
        )


_MAINTENANCE = (Job.OPTIMIZE, Job.VACUUM)
_OPTIMIZED = b'"operation":"OPTIMIZE"'


def golden_of(recording: Recording) -> Golden:
    return Golden(
        mutations=recording.mutations,
        states=states_of(recording.mutations),
        results=list(recording.results),
        in_quarantine=recording.quarantined,
        first_round=recording.first_round,
        baseline=recording.baseline,
        identity=recording.identity,
    )


def sent_again(world: World, recording: Recording) -> Golden:
    """The committed recording, on a broker that holds what it was made from."""
    for round_ in (1, 2):
        send_round(world, round_)
    make_known(world)
    found = _coordinates(world)
    if found != [list(each) for each in recording.sent]:
        raise RuntimeError("this broker gave the records other offsets: record the golden run anew")
    world.identity = recording.identity
    return golden_of(recording)


def run_golden(world: World, driver: WarmDriver, lake: Path) -> Results:
    """The jobs of the golden run when all records are there: the same steps, as one round."""
    with not_yet_known(world):
        results = _green(driver.run(lake, *INGEST_AND_MERGE, max_offsets=FEW_BATCHES))
    return results + _green(driver.run(lake, *REPLAY_AND_MERGE, *_MAINTENANCE))


def record(world: World) -> Recording:
    """Sends both rounds; the world's topics must be empty before. Needs strace."""
    lake, usual, trace = (world.folder / name for name in ("golden", "golden-baseline", "golden.strace"))
    lake.mkdir()
    with WarmDriver(world, "golden-driver", prefix=tracing(trace), threads=1) as driver:
        driver.ready()
        send_round(world, 1)
        # One batch of both tables, by one query; the second round has several of each.
        results = _green(driver.run(lake, *INGEST_AND_MERGE, max_offsets=ONE_BATCH))
        quarantined = Storage.of(lake)
        driver.run(usual, BASELINE, max_offsets=SMALL_BATCHES)
        make_known(world)
        results += _green(driver.run(lake, *REPLAY_AND_MERGE))
        after_first_round = Storage.of(lake)
        send_round(world, 2)
        results += _green(driver.run(lake, *INGEST_AND_MERGE, *_MAINTENANCE, max_offsets=SMALL_BATCHES))
        driver.run(usual, BASELINE, max_offsets=SMALL_BATCHES)
    mutations = recorded(trace, lake)
    states = states_of(mutations)
    require_same(states[-1], lake)
    baseline = recorded(trace, usual)
    require_same(states_of(baseline)[-1], usual)
    trace.unlink()
    return Recording(
        mutations=mutations,
        quarantined=_reached(states, quarantined),
        first_round=_reached(states, after_first_round),
        results=results,
        baseline=baseline,
        sent=_coordinates(world),
        identity=Identity.of(Cluster(world.stack.kafka.client_settings()).facts(world.topics())),
    )


def _reached(states: Sequence[Storage], found: Storage) -> int:
    """After how many mutations the files were these."""
    return next(n for n, state in enumerate(states) if state.files == found.files)


def _green(results: Results) -> Results:
    failed = [result for result in results if result["exit_code"] != 0]
    if failed:
        raise RuntimeError(f"the golden run is not green: {failed}")
    return results


def _coordinates(world: World) -> list[list[Any]]:
    return [[each.table, each.partition, each.offset] for sent in world.sent.values() for each in sent]


def require_same(last: Storage, lake: Path) -> None:
    """Raise unless what was recorded leads to the same files, byte by byte: nothing was missed."""
    made, found = last.files, Storage.of(lake).files
    different = sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))
    if different:
        raise RuntimeError(f"the record differs from the lake in {different[:5]}")
