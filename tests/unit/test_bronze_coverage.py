"""Files that cannot be what Kafka holds in a batch's range are refused before the commit."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.coverage import refuse_misfit
from cdc_lakehouse.bronze.written_file import Span, WrittenFile
from cdc_lakehouse.errors import BatchMisfitError

ADDED = {"shop.orders@id-1": {0: ((10, 20),), 1: ((0, 5),)}}
GAPS = {"shop.orders@id-1": {0: ((10, 12), (15, 20))}}


def file(*spans: Span, rows: int | None = None) -> WrittenFile:
    counted = sum(span.rows for span in spans)
    return WrittenFile(
        name="f.parquet", size=1, modified=1, rows=counted if rows is None else rows, spans=spans
    )


def span(
    first: int, last: int, rows: int | None = None, *, topic: str = "shop.orders", partition: int = 0
) -> Span:
    return Span(topic, partition, first, last, last - first + 1 if rows is None else rows)


def problem(*files: WrittenFile) -> str:
    with pytest.raises(BatchMisfitError) as caught:
        refuse_misfit(files, ADDED, table="orders")
    return caught.value.problem


def test_files_that_cover_the_range_are_fine():
    refuse_misfit([file(span(15, 19)), file(span(10, 14), span(0, 4, partition=1))], ADDED, table="orders")


def test_compaction_and_transactions_leave_gaps():
    refuse_misfit([file(span(11, 18, rows=2))], ADDED, table="orders")


def test_a_range_without_records_needs_no_file():
    refuse_misfit([], ADDED, table="orders")


@pytest.mark.parametrize(
    "outside",
    [
        span(9, 12),
        span(18, 20),
        span(10, 12, topic="shop.other"),
        span(10, 12, partition=2),
    ],
    ids=["before", "behind", "of another topic", "of another partition"],
)
def test_a_record_outside_of_the_range_is_refused(outside):
    assert "outside of" in problem(file(outside))


def test_a_record_in_two_files_is_refused():
    assert (
        problem(file(span(10, 14)), file(span(14, 19))) == "shop.orders/0 14..19 beside shop.orders/0 10..14"
    )


def test_a_file_inside_another_is_refused():
    assert "beside" in problem(file(span(10, 19)), file(span(11, 12)), file(span(13, 14)))


def test_more_rows_than_offsets_are_refused():
    assert problem(file(span(10, 12, rows=4))) == "shop.orders/0 10..12 in 4 rows"


def test_rows_without_a_place_in_kafka_are_refused():
    assert problem(file(span(10, 12), rows=5)) == "f.parquet has 5 rows, of which 3 have a place in Kafka"


def test_parts_of_gaps_are_held_against_each_of_them():
    refuse_misfit([file(span(10, 11)), file(span(16, 19))], GAPS, table="orders")


def test_a_record_between_two_gaps_is_there_already_and_is_refused():
    with pytest.raises(BatchMisfitError) as caught:
        refuse_misfit([file(span(11, 15, rows=2))], GAPS, table="orders")

    assert caught.value.problem == "shop.orders/0 11..15 outside of [10, 12), [15, 20)"
