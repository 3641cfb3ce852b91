"""How the records of a drain are shared out among tasks: a decision on backlog and cores, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_PIECES_PER_CORE = 2
"""So that cores that finish early find something left, and a commit still has few files."""
_SMALLEST_PIECE = 25_000
"""Below, starting a task costs more than another core gains."""
_SMALL = 20_000
_RECORDS_PER_SMALL_TASK = 10_000


@dataclass(frozen=True, slots=True)
class Layout:
    records_per_task: int
    """A partition with more of them in a batch is read by several tasks: a huge one uses all cores."""
    tasks: int | None
    """What Kafka's partitions are read by together; None leaves each to tasks of its own.

    Only where all of it is small: partitions are put together by their number, not by their size.
    """


def together(cores: int) -> Layout:
    """Of a batch of many small tables: a task of each core reads a share of all their partitions."""
    return Layout(records_per_task=_SMALLEST_PIECE, tasks=max(1, cores))


def is_small(backlog: int) -> bool:
    """Whether reading it takes less time than compiling code for it."""
    return backlog <= _SMALL


def lay_out(backlogs: Iterable[int], *, cores: int, per_batch: int) -> Layout:
    """`backlogs` of the partitions; a batch holds at most `per_batch` records of all of them."""
    ahead = [backlog for backlog in backlogs if backlog > 0]
    total = min(sum(ahead), per_batch)
    pieces = max(1, cores) * _PIECES_PER_CORE
    records_per_task = max(_SMALLEST_PIECE, -(-total // pieces))
    if not is_small(sum(ahead)) or len(ahead) < 2:
        return Layout(records_per_task=records_per_task, tasks=None)
    tasks = max(1, min(cores, -(-total // _RECORDS_PER_SMALL_TASK)))
    return Layout(records_per_task=records_per_task, tasks=tasks)
