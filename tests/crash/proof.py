"""The steps of the proof: enumerate, kill, stop, double, restore; count, and say what was found."""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from crash import in_a_bucket  # type: ignore[import-not-found]
from crash.baseline import losses  # type: ignore[import-not-found]
from crash.broker import World  # type: ignore[import-not-found]
from crash.driver import DriverFailedError, WarmDriver  # type: ignore[import-not-found]
from crash.golden import Golden  # type: ignore[import-not-found]
from crash.hands import brought_back, every_lost_answer, restored_by_hand  # type: ignore[import-not-found]
from crash.in_a_bucket import NotHereError, Share, bench_in_a_bucket  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.kills import Met, at_once, driver_of, killed, killed_as_submitted, zombies  # type: ignore[import-not-found]
from crash.moved_keys import MovedKeys  # type: ignore[import-not-found]
from crash.mutants import CASES, MUTANTS, Trial  # type: ignore[import-not-found]
from crash.repair_crashes import trials_of, tried  # type: ignore[import-not-found]
from crash.repair_recording import RepairsRecording, record_repairs  # type: ignore[import-not-found]
from crash.replay import AT_ONCE, Bench  # type: ignore[import-not-found]
from crash.results import Results  # type: ignore[import-not-found]
from crash.states import Work, collapsed, enumerated  # type: ignore[import-not-found]

_Told = tuple[Findings, dict[str, Any]]
STEPS = (
    *("states", "repairs", "answers", "hands", "at_once", "kills", "submitted", "zombies", "guards", "s3"),
    "baseline",
)
_IN_PARTS = ("states", "repairs")
_STATES_PER_DRIVER = 170


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it."""

    seed: int = 1
    part: tuple[int, int] = (1, 1)
    """Of the states, and of those of repairs."""
    witnesses: int = 24
    """States that are run although they are said to equal others."""
    witnesses_of_repair: int = 2
    copies: int = 20
    kills: int = 96
    submitted: int = 6
    zombies: int = 54
    pairs: int = 10
    s3: Share = field(default_factory=Share)
    baseline: int = 40


class Course:
    """Takes the steps one by one and tells how long each took. What one finds, no other can lose."""

    def __init__(self, world: World, golden: Golden, size: Size, results: Results) -> None:
        self.world, self.golden, self.size, self.results = world, golden, size, results
        self._driver: WarmDriver | None = None
        self._bench: Bench | None = None

    def take(self, steps: Sequence[str]) -> bool:
        """Whether all of them came to their end."""
        finished = {name: self._took(name) for name in steps}
        return all(finished.values())

    @property
    def bench(self) -> Bench:
        """With a driver that lives."""
        if self._driver is None or not self._driver.is_alive():
            self.without_driver()
            # Beside each order that is held before its commit another one must find its way.
            self._driver = WarmDriver(self.world, "warm", threads=2 * AT_ONCE, stays=True)
            self._bench = Bench(self.world, self._driver.ready())
        assert self._bench is not None
        return self._bench

    def without_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def _took(self, name: str) -> bool:
        began = time.monotonic()
        step: Callable[[], _Told] = getattr(self, f"_{name}")
        part, parts = self.size.part
        title = f"{name} {part}/{parts}" if name in _IN_PARTS and parts > 1 else name
        try:
            findings, counts = step()
        except NotHereError as exc:
            self.results.leave_out(title, str(exc))
            counts, is_whole = {"left out": str(exc)}, False
        except Exception as exc:  # noqa: BLE001 - the other steps are taken, and the course is not whole
            self.results.break_off(title, "".join(traceback.format_exception_only(exc)).strip())
            traceback.print_exc()
            self.without_driver()  # whatever it still does is in nobody's way
            counts, is_whole = {"broken off": repr(exc)}, False
        else:
            self.results.add(title, findings, seconds=time.monotonic() - began, **counts)
            is_whole = True
        seconds = time.monotonic() - began
        print(f"{seconds:7.1f} s  {title} {counts}; {self.results.summary()}", file=sys.stderr, flush=True)
        return is_whole

    def _states(self) -> _Told:
        every = enumerated(self.golden.mutations, self.golden.states, seed=self.size.seed)
        found = collapsed(every, witnesses=self.size.witnesses, seed=self.size.seed)
        part, parts = self.size.part
        work = found.work[part - 1 :: parts]
        states = self._share(found.enumerated)
        counts = {"states": states, "run": len(work), "enumerated": dict(found.by_variant)}
        findings = Findings()
        for place in range(0, len(work), _STATES_PER_DRIVER):
            findings.include(self._run_states(work[place : place + _STATES_PER_DRIVER]), where="state")
        return findings, counts

    def _repairs(self) -> _Told:
        """A plan is made of each, and its next steps recorded anew where the golden run was."""
        if self.world.identity is None:
            recording = record_repairs(self.world, self.golden)
        else:
            recording = RepairsRecording.of_golden(self.golden)
        trials = trials_of(
            self.world, recording, witnesses=self.size.witnesses_of_repair, seed=self.size.seed
        )
        chosen = trials.part(*self.size.part)
        findings = Findings()
        for place in range(0, len(chosen), _STATES_PER_DRIVER):
            findings.include(tried(self.bench, chosen[place : place + _STATES_PER_DRIVER]), where="repair")
            self.without_driver()
        by_repair = Counter(trial.course.repair.name for trial in chosen)
        return findings, {"states": self._share(trials.enumerated), "run": len(chosen), "by": dict(by_repair)}

    def _share(self, states: int) -> int:
        """Return what a part counts for. A state is proved by one that equals it, whatever part has that."""
        part, parts = self.size.part
        return states * part // parts - states * (part - 1) // parts

    def _run_states(self, work: Sequence[Work]) -> Findings:
        """Once more if the driver dies of something: no state asks for its death."""
        try:
            found: Findings = self.bench.run_states(work)
        except DriverFailedError:
            found = self.bench.run_states(work)
        self.without_driver()  # hundreds of lakes leave their traces in the caches of a JVM
        return found

    def _answers(self) -> _Told:
        commits, found = every_lost_answer(self.bench, self.golden)
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
        found, bench = Findings(), self.bench
        trial = Trial(bench, self.golden, MovedKeys.made(bench))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            whole = pool.map(lambda case: case(trial), CASES)
            for case, findings in zip(CASES, whole, strict=True):
                found.include(findings, where=case.__name__)
            off = {
                guard: pool.submit(self._without, trial, guard)
                for guard, mutant in MUTANTS.items()
                if not mutant.is_alone
            }
            told = {guard: future.result() for guard, future in off.items()}
        alone = {guard: self._without(trial, guard) for guard, mutant in MUTANTS.items() if mutant.is_alone}
        return found, {"off": {**told, **alone}}

    def _without(self, whole: Trial, guard: str) -> dict[str, Any]:
        mutant = MUTANTS[guard]
        try:
            without = mutant.case(replace(whole, guards_off=(guard,)))
        except (DriverFailedError, TimeoutError, RuntimeError) as exc:
            # It is to be noticed by what it does to a lake, not by a test that cannot go on.
            return {"noticed": False, "sentence": repr(exc)}
        return {
            "noticed": mutant.is_noticed(without),
            mutant.shows: getattr(without, mutant.shows),
            "sentence": next(iter(without.sentences), ""),
        }

    def _s3(self) -> _Told:
        """The lakes in a bucket; the disk's driver rests meanwhile."""
        with bench_in_a_bucket(self.bench) as bench:
            self.without_driver()
            found, counts = in_a_bucket.course(bench, self.golden, self.size.s3, seed=self.size.seed)
        return found, counts

    def _baseline(self) -> _Told:
        """The usual way, in states of the same kinds; what it loses is told, and does not count here."""
        found = losses(self.bench, self.golden.baseline, count=self.size.baseline, seed=self.size.seed)
        return Findings(), asdict(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.without_driver()


def _killed(met: Met) -> _Told:
    return met.findings, {"kills": met.count, "signals": met.signals}
