"""How far silver is behind, from two ledgers and from what the newest ingest saw in Kafka."""

from __future__ import annotations

from dataclasses import replace

import pytest
from orders_in_kafka import SOURCE, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.lake.lag import offsets_behind, read_unread, write_unread
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


def test_what_an_ingest_saw_counts_although_it_could_not_read_it():
    silver = replace(BRONZE, sources={SOURCE: {0: Progress(floor=0, end=7), 1: Progress(floor=5, end=8)}})
    unread = {SOURCE: {0: (10, 90), 1: (8, 10), 2: (3, 5)}, "made@again": {0: (0, 4)}}

    assert offsets_behind(BRONZE, silver, unread=unread) == (90 - 7) + 2 + 2 + 4
    assert offsets_behind(None, None, unread=unread) == 80 + 2 + 2 + 4


def test_a_look_that_is_older_than_the_ledger_adds_nothing():
    read = replace(BRONZE, sources={SOURCE: {0: Progress(floor=0, end=20), 1: Progress(floor=5, end=8)}})

    assert offsets_behind(read, read, unread={SOURCE: {0: (10, 20), 1: (5, 7)}}) == 0


def test_looks_of_a_group_are_kept_by_table_and_what_was_read_is_forgotten(tmp_path):
    uri = f"{tmp_path.as_uri()}/unread/main.json"
    orders, customers = {SOURCE: {0: (3, 9)}}, {"c@id": {1: (0, 2)}}

    write_unread(uri, {"orders": orders, "customers": customers})
    write_unread(uri, {"customers": {}})

    assert read_unread(uri) == {"orders": orders}


@pytest.mark.parametrize("content", [b'{"v": 1, "tables": [7]}', b"", b"\xff\xfe\x00"])
def test_a_file_that_is_none_of_ours_says_nothing(tmp_path, content):
    (tmp_path / "main.json").write_bytes(content)

    assert read_unread(f"{tmp_path.as_uri()}/main.json") == {}
    assert read_unread(f"{tmp_path.as_uri()}/none.json") == {}
