"""`python -m bench`: verify, measure, write tests/bench/results."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bench.measure import measure  # type: ignore[import-not-found]
from bench.report import environment, markdown, write  # type: ignore[import-not-found]
from bench.verify import verify  # type: ignore[import-not-found]
from bench.workloads import BATCH, WORKLOADS  # type: ignore[import-not-found]

LEAST_REPETITIONS = 5


def main(
    *,
    only: Annotated[str | None, typer.Option(help="One workload by its name.")] = None,
    records: Annotated[int, typer.Option(min=1000, help="Per repetition.")] = 2 * BATCH,
    repetitions: Annotated[int, typer.Option(min=LEAST_REPETITIONS, help="The warm-up not counted.")] = 7,
) -> None:
    """Decode the same records in every way that we know, on one core."""
    chosen = [workload for workload in WORKLOADS if only in (None, workload.name)]
    if not chosen:
        sys.exit(f"error: no workload {only!r}; there are {', '.join(each.name for each in WORKLOADS)}")
    about, results = environment(), []
    for workload in chosen:
        verify(workload, workload.records(BATCH))
        results += measure(workload.name, records=records, repetitions=repetitions)
    path = write(results, about)
    print(markdown(results, about))
    print(f"written: {path}")


if __name__ == "__main__":
    typer.run(main)
