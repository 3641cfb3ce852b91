"""Wait until no merge runs: a commit of OPTIMIZE beside a merge of the same rows costs the merge its try."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from threading import Lock

from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.attempts import BEAT_SECONDS, AttemptRecord, read_attempts
from cdc_lakehouse.lake.names import Lake

logger = logging.getLogger(__name__)

LONGEST_WAIT = timedelta(minutes=15)
"""In one run, over all tables: behind it OPTIMIZE goes on, and conflicts decide."""
_LOOK_SECONDS = 10.0
_ALIVE = timedelta(seconds=2 * BEAT_SECONDS)


def running_merges(records: Iterable[AttemptRecord], *, now: datetime) -> list[str]:
    """Return the attempts that are merging; one that missed two signs of life is not waited for."""
    return sorted(
        record.attempt
        for record in records
        if record.job == Job.SILVER_MERGE and record.ended is None and now - record.seen < _ALIVE
    )


class QuietMoments:
    """The waits of one run: they share one budget, and tables side by side wait together."""

    def __init__(
        self,
        lake: Lake,
        *,
        longest_attempt: timedelta,
        budget: timedelta = LONGEST_WAIT,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._lake = lake
        self._longest_attempt = longest_attempt
        self._left = budget.total_seconds()
        self._sleep = sleep
        self._lock = Lock()

    def wait(self) -> bool:
        """Return whether no merge runs; False where one still does and the budget is spent."""
        with self._lock:
            while merges := self._running_merges():
                if self._left <= 0:
                    logger.warning("optimize beside a merge: it has waited long enough", extra={"of": merges})
                    return False
                logger.info("optimize waits for a merge", extra={"of": merges, "seconds_left": self._left})
                self._sleep(_LOOK_SECONDS)
                self._left -= _LOOK_SECONDS
            return True

    def _running_merges(self) -> list[str]:
        now = datetime.now(UTC)
        since = now - max(2 * self._longest_attempt, timedelta(days=1))
        records = read_attempts(self._lake, longest=self._longest_attempt, began_after=since)
        return running_merges(records.values(), now=now)
