"""When a merge asks whether its source went back, or events came late: from numbers that it has anyway."""

from __future__ import annotations

from dataclasses import replace

import pytest
from orders_in_kafka import SOURCE, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.late.refused import may_have_gone_back

WORK = {SOURCE: {0: (10, 20)}}
FACTS = WorkFacts(
    read=5,
    undecodable=0,
    undecoded=0,
    ignored=0,
    truncates=0,
    errors_by_code={},
    seen_through=None,
    lowest=(0, 500),
    highest=(0, 900),
    turned_back=False,
)


@pytest.mark.parametrize(
    ("reached", "turned", "looks"),
    [
        (None, None, False),
        ((0, 499), None, False),
        ((0, 500), None, False),
        ((0, 501), None, True),
        ((1, 0), None, True),
        ((0, 499), 9, False),
        ((0, 499), 10, True),
        ((0, 499), 20, False),
    ],
    ids=[
        "first merge",
        "all above",
        "a transaction that was cut",
        "below",
        "older epoch",
        "before",
        "within",
        "behind",
    ],
)
def test_only_work_with_a_sign_of_it_is_looked_at(reached, turned, looks):
    held = replace(ledger_of({}), sources={SOURCE: {0: Progress(floor=0, end=20, turned=turned)}})

    assert may_have_gone_back(FACTS, before=Applied(reached=reached), held=held, work=WORK) is looks


@pytest.mark.parametrize(
    ("facts", "applied", "old"),
    [
        ({}, Applied(), False),
        ({}, Applied(reached=(0, 499)), False),
        ({}, Applied(reached=(0, 500)), True),
        ({}, Applied(reached=(1, 0)), True),
        ({"lowest": (1, 0)}, Applied(reached=(0, 900)), False),
        ({}, Applied(reached=(0, 0)), True),
        ({"snapshot_rows": 1}, Applied(reached=(0, 499)), True),
        ({}, Applied(reached=(0, 499), cleared=Place((0, 1, 600, 1, 610, 1, 1))), True),
        ({"lowest": None}, Applied(reached=(0, 900)), False),
    ],
    ids=[
        "first merge",
        "all above",
        "a transaction that was cut",
        "older epoch",
        "newer epoch",
        "nothing but what named no commit",
        "rows of a snapshot",
        "before a truncate",
        "no events",
    ],
)
def test_only_work_that_may_be_old_is_compared_with_silver(facts, applied, old):
    assert replace(FACTS, **facts).may_be_old(applied) is old
