"""How far silver is behind, from two ledgers."""

from __future__ import annotations

from dataclasses import replace

from orders_in_kafka import SOURCE, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.lake.lag import offsets_behind
from cdc_lakehouse.lake.progress import Progress

BRONZE = replace(
    ledger_of({}),
    sources={
        SOURCE: {
            0: Progress(floor=0, end=10, gaps=((2, 4),), seen=15),
            1: Progress(floor=5, end=8),
        }
    },
)


def test_silver_is_behind_by_what_bronze_holds_and_what_kafka_was_seen_to_hold():
    silver = replace(BRONZE, sources={SOURCE: {0: Progress(floor=0, end=7)}})

    assert offsets_behind(BRONZE, silver) == 8 + 3


def test_a_table_without_silver_is_behind_by_all_of_bronze():
    assert offsets_behind(BRONZE, None) == 15 + 3


def test_silver_is_behind_by_nothing_where_all_was_read_and_applied():
    read = replace(BRONZE, sources={SOURCE: {0: Progress(floor=0, end=10), 1: Progress(floor=5, end=8)}})

    assert offsets_behind(read, read) == 0
