"""`python -m bench`: verify, measure, write tests/bench/results."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from bench import (  # type: ignore[import-not-found]
    measure_decode,
    measure_drain,
    measure_memory,
    measure_merge,
    measure_spark,
    measure_tables,
)
from bench.environment import environment  # type: ignore[import-not-found]
from bench.report import Run, markdown, write  # type: ignore[import-not-found]
from bench.results import Result, with_ratios  # type: ignore[import-not-found]
from bench.spark_session import engine  # type: ignore[import-not-found]
from bench.workloads import (  # type: ignore[import-not-found]
    DECODE,
    DRAIN,
    LEDGER,
    MEMORY,
    TABLES,
    UDF,
    Merge,
    chosen,
)

LEAST_REPETITIONS = 5
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    *,
    only: Annotated[
        str | None, typer.Option(help="A part (udf, decode, memory, drain, tables, merge) or a workload.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="The warm-up not counted.")] = LEAST_REPETITIONS,
    variants: Annotated[
        str | None, typer.Option(help="Some variants of udf, drain or merge, by commas.")
    ] = None,
    reference: Annotated[bool, typer.Option("--reference", help="Copy to results/reference.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Where ours spends its time, one workload.")
    ] = False,
) -> None:
    """Decode the same records in every way that we know."""
    names = chosen(only)
    if not names:
        known = ", ".join(("udf", "decode", "memory", "drain", "tables", "merge", *chosen(None)))
        sys.exit(f"error: no part or workload {only!r}; there are {known}")
    if reference and (only or variants or repetitions < LEAST_REPETITIONS):
        sys.exit(f"error: a reference run measures everything, {LEAST_REPETITIONS} times at least")
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = Path(scratch)
        if profile:
            for workload in DECODE:
                if workload.name in names:
                    print(f"{workload.name}\n{measure_decode.profile(workload, folder=folder)}")
            return
        about, results, skipped = environment(), [], []
        for found, left_out in _measured(names, variants, repetitions=repetitions, folder=folder):
            results += found
            skipped += left_out
            # After each workload: a run that is stopped keeps what it has.
            write(Run(about, with_ratios(results), skipped, complete=False))
    run = Run(about, with_ratios(results), skipped, complete=True)
    written = write(run, reference=reference)
    print(markdown(run))
    print(f"written: {written}")


Measured = tuple[list[Result], list[str]]
"""Of one workload: results, and what was left out."""


def _measured(
    names: list[str], variants: str | None, *, repetitions: int, folder: Path
) -> Iterator[Measured]:
    """First what needs one process, then what needs Spark."""
    for workload in (each for each in DECODE if each.name in names):
        _say(workload.name)
        left_out = [f"{workload.name} {name}: {why}" for name, why in workload.skipped.items()]
        yield measure_decode.measure(workload, repetitions=repetitions, folder=folder), left_out
    wanted = variants.split(",") if variants else []
    for workload in (each for each in UDF if each.name in names):
        _say(workload.name)
        found = measure_spark.measure(workload, repetitions=repetitions, folder=folder, only=wanted)
        yield found, measure_spark.skipped(workload)
    if MEMORY in names:
        _say(MEMORY)
        with engine(folder / MEMORY, records=folder) as spark:
            yield measure_memory.measure(spark), []
    if {DRAIN, LEDGER} & set(names):
        _say("drain")
        for part in measure_drain.measure(repetitions=repetitions, folder=folder / "drain", only=wanted):
            yield part, []
        yield [], measure_drain.skipped()
    if set(TABLES) & set(names):
        _say("tables")
        for part in measure_tables.measure(folder=folder / "tables"):
            yield part, []
    merges = [name for name in names if Merge.named(name)]
    if merges:
        _say("merge")
        for part in measure_merge.measure(
            names=merges, repetitions=repetitions, folder=folder / "merge", only=wanted
        ):
            yield part, []


def _say(name: str) -> None:
    print(f"measuring {name}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    app()
