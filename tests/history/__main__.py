"""`make fuzz-history`: histories on a stack of their own, for some minutes or from a file."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from history.driver import WarmDriver  # type: ignore[import-not-found]
from history.plan import OFTEN, Choice, UnknownNameError, steps  # type: ignore[import-not-found]
from history.session import Verdict, run_history  # type: ignore[import-not-found]
from history.shrinking import shrunk, thinned  # type: ignore[import-not-found]
from history.steps import Step, read_steps, write_steps  # type: ignore[import-not-found]
from history.tables import Table, tables_named  # type: ignore[import-not-found]
from local_stack import LocalStack, RunningStack

FOLDER = Path(__file__).parents[2] / ".local" / "fuzz-history"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz-history", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--without", default="", help="kinds, groups of kinds, tables: truncate,ddl,toast")
    parser.add_argument("--with", dest="also", default="", help="tables that are off by default: seats")
    parser.add_argument(
        "--faults", type=float, default=OFTEN, help="how often one comes before a drain: 0 to 1"
    )
    parser.add_argument("--replay", type=Path, help="steps of an earlier run")
    parser.add_argument("--minimise", type=float, default=0, metavar="MINUTES", help="shrink what is found")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--verbose", action="store_true", help="what PostgreSQL refuses")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _run(stack: RunningStack, chosen: argparse.Namespace, choice: Choice) -> Verdict:
    folder = chosen.folder / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    driver = WarmDriver(stack, folder)
    seed, wanted, tables = chosen.seed, steps(chosen.seed, choice), choice.tables
    if chosen.replay:
        seed, wanted = read_steps(chosen.replay)
        tables = tables_named(step.table for step in wanted)

    def tried(candidate: Iterable[Step], tables: tuple[Table, ...], *, seconds: float) -> Verdict:
        return run_history(stack, driver, folder, candidate, tables=tables, seed=seed, seconds=seconds)

    try:
        verdict = tried(wanted, tables, seconds=60 * chosen.minutes)
        path = chosen.folder / f"steps-{seed}.json"
        write_steps(path, verdict.steps, seed=seed)
        print(f"{verdict}\nsteps: {path}", flush=True)
        if verdict.finding is not None and chosen.minimise:
            _shrink(verdict, tried, chosen)
        return verdict
    finally:
        driver.close()


def _shrink(verdict: Verdict, tried: Callable[..., Verdict], chosen: argparse.Namespace) -> None:
    """Only the tables that the find is about are there in a try: it takes seconds then."""
    concerned = verdict.finding.tables if verdict.finding is not None else frozenset()
    seconds = 60 * chosen.minimise

    def fails(candidate: list[Step]) -> bool:
        names = {step.table for step in candidate if step.table}
        found = tried(candidate, tables_named(names), seconds=seconds) if names else None
        failed = found is not None and found.fails_like(verdict)
        print(f"{len(candidate)} steps: {'failed' if failed else 'passed'}", flush=True)
        return failed

    until = time.monotonic() + seconds
    least = next(
        (each for each in thinned(list(verdict.steps), concerned) if fails(each)), list(verdict.steps)
    )
    least = shrunk(least, fails, seconds=until - time.monotonic())
    path = chosen.folder / f"steps-{verdict.seed}-least.json"
    write_steps(path, least, seed=verdict.seed)
    print(
        f"{len(least)} of {len(verdict.steps)} steps still fail: make fuzz-history REPLAY={path}", flush=True
    )


def main() -> int:
    chosen = _arguments()
    logging.basicConfig(level=logging.DEBUG if chosen.verbose else logging.WARNING)
    if not 0 <= chosen.faults <= 1:
        print(f"error: FAULTS={chosen.faults:g} is no share between 0 and 1")
        return 2
    try:
        choice = Choice.of(without=_names(chosen.without), also=_names(chosen.also), faults=chosen.faults)
    except UnknownNameError as exc:
        print(f"error: {exc}")
        return 2
    local = LocalStack(chosen.folder / "stack", report=_say)
    local.clean()
    with local.running("postgres", "registry", "connect", airflow=False) as stack:
        return int(_run(stack, chosen, choice).finding is not None)


def _say(component: str, event: str, seconds: float) -> None:
    print(f"  {seconds:5.1f} s  {component:<12} {event}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
