"""One history from its steps to its verdict: a world of its own, and what is told of it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException

from history.driver import WarmDriver  # type: ignore[import-not-found]
from history.executor import Executor, Finding  # type: ignore[import-not-found]
from history.keepsakes import keep  # type: ignore[import-not-found]
from history.steps import Kind, Step  # type: ignore[import-not-found]
from history.tables import Table  # type: ignore[import-not-found]
from history.world import World, world  # type: ignore[import-not-found]
from history.writers import Writers  # type: ignore[import-not-found]
from local_stack import RunningStack

logger = logging.getLogger(__name__)

_TOLD = (
    "steps",
    "records",
    "drains",
    "kills",
    "restarts",
    "slots",
    "quiet points",
    "rows compared",
    "values compared",
    "values exempt",
    "rows of histories compared",
)
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`steps` are those that were carried out."""

    seed: int
    steps: tuple[Step, ...]
    finding: Finding | None
    summary: str

    def fails_like(self, other: Verdict) -> bool:
        """Whether both failed, and for the same kind of reason."""
        ours, theirs = self.finding, other.finding
        return ours is not None and theirs is not None and ours.sentence == theirs.sentence

    def __str__(self) -> str:
        if self.finding is None:
            return f"silver was PostgreSQL at every quiet point: {self.summary}"
        head = f"seed {self.seed}, step {self.finding.number} ({self.finding.step}): {self.finding.sentence}"
        return "\n".join([head, *self.finding.details, self.summary])


def run_history(
    stack: RunningStack,
    driver: WarmDriver,
    folder: Path,
    steps: Iterable[Step],
    *,
    tables: Sequence[Table],
    seed: int,
    seconds: float,
    between: Callable[[World], None] = lambda _world: None,
) -> Verdict:
    """In a database, with a connector and a pipeline of its own."""
    driver.start()
    with world(stack, f"history{next(_numbers)}", folder=folder, tables=tables, fill=first_rows) as made:
        executor = Executor(made, driver, folder, between)
        finding = executor.run(steps, seconds=seconds)
        if finding is not None:
            _keep(made, folder / f"{made.name}-keepsakes")
    return Verdict(seed, tuple(executor.done), finding, _summary(seed, executor))


def _keep(made: World, folder: Path) -> None:
    """A find may be of a stack that does not answer: it is told all the same."""
    try:
        keep(made, folder)
    except (OSError, KafkaException):
        logger.warning("not all is kept in %s", folder, exc_info=True)


def first_rows(made: World) -> None:
    """Before the connector starts, so that its snapshot has something of every table."""
    writers = Writers(made.connect, made.tables)
    for table in made.tables:
        for seed in range(3):
            writers.write(Step(Kind.INSERT_MANY, table.name, seed=seed))
            writers.write(Step(Kind.INSERT, table.name, seed=seed))
    writers.close()


def _summary(seed: int, executor: Executor) -> str:
    counts = executor.counts
    transactions = executor.writers.counts
    told = [f"seed {seed}", *(f"{counts[name]} {name}" for name in _TOLD)]
    told += [f"{count} {name}" for name, count in sorted(transactions.items())]
    spent = [f"{name} {spent / 1000:.1f} s" for name, spent in executor.milliseconds.most_common()]
    return f"{', '.join(told)}; time: {', '.join(spent)}"
