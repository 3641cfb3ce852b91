"""A line about a drain every few seconds, from a thread of its own: batches may take minutes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from cdc_lakehouse.bronze.pace import Pace

logger = logging.getLogger(__name__)

SECONDS = 5.0


class Progress:
    """Told by the drain what is committed and what is read just now; tells the log while it is entered.

    `backlog` is what Kafka held when it was asked: what came later may be read too, and is never `left`.
    """

    def __init__(
        self, backlog: int, *, every: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._backlog = backlog
        self._every = every
        self._clock = clock
        self._started = clock()
        self._done = 0
        self._batch: tuple[int, float] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=copy_context().run, args=(self._tell,), daemon=True)

    def reading(self, records: int) -> None:
        """A batch of so many offsets begins."""
        self._batch = (records, self._clock())

    def committed(self, records: int) -> None:
        """It is in bronze."""
        self._done += records
        self._batch = None

    def pace(self) -> Pace:
        left = max(0, self._backlog - self._done)
        return Pace(done=self._done, left=left, seconds=self._clock() - self._started)

    def facts(self) -> dict[str, object]:
        facts, batch = self.pace().facts(datetime.now(UTC)), self._batch
        if batch is not None:
            facts |= {"batch": batch[0], "batch_seconds": round(self._clock() - batch[1], 1)}
        return facts

    def __enter__(self) -> Self:
        self._started = self._clock()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _tell(self) -> None:
        while not self._ended.wait(self._every):
            logger.info("draining", extra=self.facts())
