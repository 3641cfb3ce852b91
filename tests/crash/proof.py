"""The steps of the proof: enumerate, kill, stop, double, restore; count, and say what was found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crash.baseline import losses  # type: ignore[import-not-found]
from crash.golden import Golden  # type: ignore[import-not-found]
from crash.hands import brought_back, every_lost_answer, restored_by_hand  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.kills import Met, at_once, driver_of, killed, killed_as_submitted, zombies  # type: ignore[import-not-found]
from crash.mutants import CASES, MUTANTS, Trial  # type: ignore[import-not-found]
from crash.replay import Bench  # type: ignore[import-not-found]
from crash.results import Results  # type: ignore[import-not-found]
from crash.states import collapsed, enumerated  # type: ignore[import-not-found]

_Told = tuple[Findings, dict[str, Any]]
STEPS = ("states", "answers", "hands", "at_once", "kills", "submitted", "zombies", "guards", "baseline")


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it."""

    seed: int = 1
    part: tuple[int, int] = (1, 1)
    """Of the states."""
    witnesses: int = 30
    """States that are run although they are said to equal others."""
    copies: int = 20
    kills: int = 96
    submitted: int = 6
    zombies: int = 54
    pairs: int = 10
    baseline: int = 40


class Course:
    """Takes the steps one by one and tells how long each took."""

    def __init__(self, bench: Bench, golden: Golden, size: Size, results: Results) -> None:
        self.bench, self.golden, self.size, self.results = bench, golden, size, results

    def take(self, steps: Sequence[str]) -> None:
        for name in steps:
            began = time.monotonic()
            step: Callable[[], _Told] = getattr(self, f"_{name}")
            findings, counts = step()
            seconds = time.monotonic() - began
            part, parts = self.size.part
            title = f"{name} {part}/{parts}" if name == "states" and parts > 1 else name
            self.results.add(title, findings, seconds=seconds, **counts)
            print(
                f"{seconds:7.1f} s  {title} {counts}; {self.results.summary()}", file=sys.stderr, flush=True
            )

    def _states(self) -> _Told:
        every = enumerated(self.golden.mutations, self.golden.states, seed=self.size.seed)
        found = collapsed(every, witnesses=self.size.witnesses, seed=self.size.seed)
        part, parts = self.size.part
        work = found.work[part - 1 :: parts]
        # A part counts for its share: a state is proved by one that equals it, in whatever part that is.
        share = found.enumerated * part // parts - found.enumerated * (part - 1) // parts
        counts = {"states": share, "run": len(work), "enumerated": dict(found.by_variant)}
        return self.bench.run_states(work), counts

    def _answers(self) -> _Told:
        commits, found = every_lost_answer(self.bench)
        return found, {"states": commits}

    def _hands(self) -> _Told:
        found = Findings()
        for layer in ("bronze", "silver"):
            found.include(restored_by_hand(self.bench, self.golden, layer=layer), where=f"{layer} restored")
        copies = list(brought_back(self.golden, copies=self.size.copies, seed=self.size.seed))
        found.include(self.bench.run_states(copies), where="copy")
        return found, {"states": 2 + len(copies)}

    def _at_once(self) -> _Told:
        with driver_of(self.bench, "at-once") as driver:
            met = at_once(self.bench, self.golden, driver.ready(), pairs=self.size.pairs, seed=self.size.seed)
        return met.findings, {"pairs": met.count}

    def _kills(self) -> _Told:
        return _killed(killed(self.bench, self.golden, kills=self.size.kills, seed=self.size.seed))

    def _submitted(self) -> _Told:
        kills = self.size.submitted
        return _killed(killed_as_submitted(self.bench, kills=kills, seed=self.size.seed))

    def _zombies(self) -> _Told:
        with driver_of(self.bench, "zombie") as driver:
            met = zombies(
                self.bench, self.golden, driver.ready(), zombies=self.size.zombies, seed=self.size.seed
            )
        return met.findings, {"zombies": met.count, "signals": met.signals}

    def _guards(self) -> _Told:
        """With all guards each case is clean; without its guard it is not."""
        found, off = Findings(), {}
        for case in CASES:
            found.include(case(Trial(self.bench, self.golden)), where=case.__name__)
        for guard, mutant in MUTANTS.items():
            without = mutant.case(Trial(self.bench, self.golden, (guard,)))
            off[guard] = {
                "noticed": mutant.is_noticed(without),
                mutant.shows: getattr(without, mutant.shows),
                "sentence": next(iter(without.sentences), ""),
            }
        return found, {"off": off}

    def _baseline(self) -> _Told:
        """The usual way, in states of the same kinds; what it loses is told, and does not count here."""
        found = losses(self.bench, self.golden.baseline, count=self.size.baseline, seed=self.size.seed)
        return Findings(), asdict(found)


def _killed(met: Met) -> _Told:
    return met.findings, {"kills": met.count, "signals": met.signals}
