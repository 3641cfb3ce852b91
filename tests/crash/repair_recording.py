"""What the steps of each repair do to a lake, recorded once, and kept in a file for who has no strace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from cdc_lakehouse.run_modes import RepairStep
from crash.broker import World  # type: ignore[import-not-found]
from crash.driver import WarmDriver  # type: ignore[import-not-found]
from crash.golden import Golden, require_same  # type: ignore[import-not-found]
from crash.identity import Identity  # type: ignore[import-not-found]
from crash.mutations import Mutation, Storage, mutations_of, states_of  # type: ignore[import-not-found]
from crash.recorder import recorded, tracing  # type: ignore[import-not-found]
from crash.recording import document_of, load, mutations_from, save  # type: ignore[import-not-found]
from crash.repairs import (  # type: ignore[import-not-found]
    Planned,
    Repair,
    planned_repairs,
    require_green,
    step_of,
)
from crash.replay import Bench  # type: ignore[import-not-found]

COMMITTED_REPAIRS = Path(__file__).with_name("repairs.recording.xz")


@dataclass(frozen=True, slots=True)
class RecordedRepair:
    """What the steps behind a plan did to its lake."""

    repair: Repair
    planned: Storage
    mutations: Sequence[Mutation]

    @property
    def states(self) -> Sequence[Storage]:
        """Before the first mutation, and behind each."""
        states: Sequence[Storage] = states_of(self.mutations, begun=self.planned)
        return states


@dataclass(frozen=True, slots=True)
class RepairsRecording:
    repairs: Sequence[RecordedRepair]
    identity: Identity
    """Of the broker that the ledgers name: that of the golden run."""

    def save(self, path: Path) -> None:
        """In the same form as a golden run."""
        lakes = [mutations_of(each.planned) for each in self.repairs]
        head = {
            "repairs": [
                {
                    "repair": asdict(each.repair),
                    "planned": [document_of(mutation) for mutation in lake],
                    "mutations": [document_of(mutation) for mutation in each.mutations],
                }
                for lake, each in zip(lakes, self.repairs, strict=True)
            ],
            "identity": asdict(self.identity),
        }
        every = [
            mutation
            for lake, each in zip(lakes, self.repairs, strict=True)
            for mutation in (*lake, *each.mutations)
        ]
        save(path, head, every)

    @classmethod
    def of_golden(cls, golden: Golden) -> Self:
        """Return the committed one. Raise where it was not recorded with the broker of this golden run."""
        recording = cls.load(COMMITTED_REPAIRS)
        if recording.identity != golden.identity:
            raise RuntimeError("the repairs were recorded with another golden run: record both anew")
        return recording

    @classmethod
    def load(cls, path: Path) -> Self:
        head, data = load(path)
        told = [line for each in head["repairs"] for line in (*each["planned"], *each["mutations"])]
        every = mutations_from(told, data)
        repairs = []
        for each in head["repairs"]:
            planned = states_of(islice(every, len(each["planned"])))[-1]
            mutations = list(islice(every, len(each["mutations"])))
            repairs.append(RecordedRepair(Repair.of_document(each["repair"]), planned, mutations))
        return cls(repairs, Identity(**head["identity"]))


def record_repairs(world: World, golden: Golden) -> RepairsRecording:
    """Plan each repair, then carry it out and verify it in a lake of its own. Needs strace."""
    trace = world.folder / "repairs.strace"
    lakes: list[tuple[Planned, Path]] = []
    with WarmDriver(world, "repairs-driver", prefix=tracing(trace), threads=1) as driver:
        bench = Bench(world, driver.ready())
        for planned in planned_repairs(bench, golden):
            lake = bench.lake(planned.storage)
            for step in (RepairStep.ACT, RepairStep.VERIFY):
                require_green(step_of(driver, lake, planned.repair, step))
            lakes.append((planned, lake))
    repairs = [_recorded(planned, lake, trace) for planned, lake in lakes]
    trace.unlink()
    return RepairsRecording(repairs, golden.identity)


def _recorded(planned: Planned, lake: Path, trace: Path) -> RecordedRepair:
    repair = RecordedRepair(planned.repair, planned.storage, recorded(trace, lake))
    require_same(repair.states[-1], lake)
    return repair
