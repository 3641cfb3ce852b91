"""What a drain says about itself while it runs and when it has ended."""

from __future__ import annotations

import json
import logging
import threading
from datetime import UTC, datetime

from cdc_lakehouse import log
from cdc_lakehouse.bronze.pace import Pace
from cdc_lakehouse.bronze.progress import Progress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_end_is_estimated_from_what_was_done():
    assert Pace(done=1_000, left=3_000, seconds=10.0).facts(NOON) == {
        "done": 1_000,
        "left": 3_000,
        "per_second": 100,
        "ends": "2026-01-01T12:00:30+00:00",
        "seconds": 10.0,
    }


def test_nothing_is_estimated_before_the_first_commit():
    facts = Pace(done=0, left=3_000, seconds=10.0).facts(NOON)

    assert (facts["per_second"], facts["ends"]) == (None, None)
    assert Pace(done=0, left=3_000, seconds=10.0).report() == {"done": 0, "left": 3_000, "seconds": 10.0}


def test_what_is_read_counts_when_it_is_committed():
    clock = Clock()
    progress = Progress(5_000, clock=clock)
    progress.reading(2_000)
    clock.now += 4

    assert progress.pace() == Pace(done=0, left=5_000, seconds=4.0)
    assert (progress.facts()["batch"], progress.facts()["batch_seconds"]) == (2_000, 4.0)

    progress.committed(2_000)

    assert progress.pace() == Pace(done=2_000, left=3_000, seconds=4.0)
    assert "batch" not in progress.facts()


def test_records_that_came_after_the_look_are_not_left_over():
    progress = Progress(1_000, clock=Clock())
    progress.committed(1_500)

    assert (progress.pace().done, progress.pace().left) == (1_500, 0)


def test_while_it_runs_the_log_has_a_line_every_few_seconds_with_the_facts_bound_outside():
    handler = Lines()
    logger = logging.getLogger("cdc_lakehouse.bronze.progress")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with log.bound(table="orders"), Progress(5_000, every=0.01):
            assert handler.two.wait(10)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)

    told = json.loads(handler.texts[0])
    assert (told["event"], told["table"], told["left"]) == ("draining", "orders", 5_000)


class Lines(logging.Handler):
    """Knows when it got its second line."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(log.JsonLines())
        self.texts: list[str] = []
        self.two = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))
        if len(self.texts) > 1:
            self.two.set()
