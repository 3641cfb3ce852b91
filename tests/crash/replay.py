"""Run what a state asks for, as Airflow would: all jobs, and again where a task may be tried again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from cdc_lakehouse.contract import ExitCode
from crash.broker import World  # type: ignore[import-not-found]
from crash.driver import (  # type: ignore[import-not-found]
    ALL_TO_THE_END,
    ONE_BATCH,
    DriverFailedError,
    Results,
    WarmDriver,
)
from crash.invariants import Expected, Findings, examine, untrue  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]
from crash.states import Work  # type: ignore[import-not-found]

_NUMBERS = count(1)
TRIES = 3
AT_ONCE = 3
_MAY_BE_TRIED_AGAIN = (ExitCode.DONE, ExitCode.RETRY, ExitCode.BUG)


class Bench:
    """Where states are made, run and looked at."""

    def __init__(self, world: World, driver: WarmDriver) -> None:
        self.world = world
        self.driver = driver

    def expected(self, table: str) -> Expected:
        return Expected.of(table, self.world.sent[table])

    def folder(self) -> Path:
        return Path(self.world.folder) / "lakes" / str(next(_NUMBERS))

    def lake(self, storage: Storage) -> Path:
        """A new one, as the storage has it."""
        made: Path = self.world.store.make(storage, self.folder())
        return made

    def seen(self, lake: Path) -> Path:
        """What the lake holds by now, to be looked at."""
        seen: Path = self.world.store.seen(lake)
        return seen

    def untrue(self, lake: Path, results: Results) -> Findings:
        found: Findings = untrue(self.seen(lake), results)
        return found

    def heal(
        self, lake: Path, *tables: str, expected: Mapping[str, Expected] | None = None, **more: Any
    ) -> Findings:
        """Run until it is green, then look. What needs more than a clear is counted as stuck.

        `expected` is for tables that must not hold what was sent.
        """
        chosen = tables or tuple(PARTITIONS)
        wanted = {table: self.expected(table) for table in chosen} | {**(expected or {})}
        found = Findings()
        for attempt in range(1, TRIES + 1):
            results = self._ran(lake, found, **{"max_offsets": ONE_BATCH, "tables": chosen, **more})
            if results is None:
                break
            found.include(self.untrue(lake, results), where=f"try {attempt}")
            codes = {result["exit_code"] for result in results}
            if codes == {ExitCode.DONE}:
                break
            if not codes <= set(_MAY_BE_TRIED_AGAIN) or attempt == TRIES:
                found.add("stuck", 1, f"exit codes {sorted(codes)}: {errors_of(results)}")
                break
        for table in chosen:
            found.include(examine(self.seen(lake), wanted[table]), where=table)
        return found

    def _ran(self, lake: Path, found: Findings, **more: Any) -> Results | None:
        """None for a run that came to no end; one lake must not cost the others theirs."""
        try:
            results: Results = self.driver.run(lake, *ALL_TO_THE_END, **more)
        except (DriverFailedError, TimeoutError) as exc:
            if not self.driver.is_alive():
                raise
            told = str(exc).strip().splitlines() or ["no answer in time"]
            found.add("stuck", 1, f"the run did not end: {told[-1]}")
            return None
        return results

    def heal_all(
        self, lakes: Mapping[Path, Sequence[str]], *, what: str, keep: bool = False, **more: Any
    ) -> Findings:
        """The tables of each lake, several lakes side by side. Clean ones are deleted, or kept."""
        found = Findings()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            healed = pool.map(lambda lake: (lake, self.heal(lake, *lakes[lake], **more)), lakes)
            for lake, single in healed:
                found.include(single, where=f"{what} {lake.name}")
                if single.is_clean and not keep:
                    shutil.rmtree(lake, ignore_errors=True)
        return found

    def run_states(self, work: Iterable[Work]) -> Findings:
        """Each state in a folder of its own, some side by side."""
        found = Findings()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for each, single in pool.map(lambda w: (w, self._run_state(w)), work):
                found.include(single, where=f"{each.state.variant} {each.state.name}")
        return found

    def _run_state(self, work: Work) -> Findings:
        lake = self.lake(work.state.storage)
        found = self.heal(lake, *work.tables)
        if found.is_clean:
            shutil.rmtree(lake)
        return found


def errors_of(results: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        f"{result['job']} {table['table']} {table['error']['code']} {table['error']['sentence']}"
        for result in results
        for table in result["tables"]
        if table["error"] is not None
    ]
