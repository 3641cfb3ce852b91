"""What is read again without Spark's source, and how what went wrong there comes back."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.read_again import Piece, pieces_of, unfit_timestamp
from cdc_lakehouse.bronze.worker_failures import WorkerKafkaError, known_failure, telling_kafka
from cdc_lakehouse.errors import KafkaMovedError
from cdc_lakehouse.kafka.records import UnreadRecordsError
from cdc_lakehouse.lake.spans import Spans


def test_spans_are_read_in_pieces_that_cover_them_and_never_two_of_them():
    spans: Spans = {
        "shop.orders@id": {0: ((10, 50_011), (60_000, 60_002)), 1: ((7, 7),)},
        "shop.old@id": {3: ((0, 1),)},
    }

    assert list(pieces_of(spans)) == [
        Piece("shop.old", 3, 0, 1),
        Piece("shop.orders", 0, 10, 25_010),
        Piece("shop.orders", 0, 25_010, 50_010),
        Piece("shop.orders", 0, 50_010, 50_011),
        Piece("shop.orders", 0, 60_000, 60_002),
    ]


def test_the_record_that_ended_a_query_is_named():
    text = "Record at topic shop.orders partition 3 offset 17 has timestamp value -9223372036854776"

    assert unfit_timestamp(f"KafkaIllegalStateException: {text} that overflows") == "shop.orders/3@17"
    assert unfit_timestamp("Record at topic shop.orders was fine") is None


def test_records_that_are_gone_are_told_to_the_driver():
    with pytest.raises(WorkerKafkaError) as caught, telling_kafka():
        raise UnreadRecordsError("shop.orders/0 ends at [5], below 9")

    found = known_failure(f"PythonException: {caught.value}", root="", table="orders")
    assert isinstance(found, KafkaMovedError)
    assert (found.table, found.what) == ("orders", "shop.orders/0 ends at [5), below 9")
