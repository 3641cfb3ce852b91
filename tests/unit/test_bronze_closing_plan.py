"""Which cases a person means, by code and by coordinate: decisions on values."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.closing_plan import Case, Meant, plan_closing
from cdc_lakehouse.errors import CaseUnknownError
from cdc_lakehouse.lake.progress import Progress

TOPIC = "shop.public.orders"
HELD = [
    Case(TOPIC, 0, 17, "bad_frame"),
    Case(TOPIC, 1, 3, "bad_frame"),
    Case(TOPIC, 0, 18, "unknown_schema"),
    Case(TOPIC, 0, 19, "bad_frame", closed=True),
]

READ = {f"{TOPIC}@id": {0: Progress(floor=0, end=20), 1: Progress(floor=0, end=5)}}


def counts(*, close: tuple[str, ...] = (), reopen: tuple[str, ...] = ()) -> tuple[int, int]:
    plan = plan_closing("orders", HELD, read=READ, close=close, reopen=reopen)
    return plan.closed, plan.reopened


def test_a_code_means_all_records_that_have_it_and_a_coordinate_one():
    assert counts(close=("bad_frame",)) == (2, 0)
    assert counts(close=(f"{TOPIC}/0@18",)) == (1, 0)
    assert counts(close=("bad_frame", f"{TOPIC}/0@17", f"{TOPIC}/0@18")) == (3, 0)


def test_what_is_done_already_is_no_work_and_no_error():
    assert counts(close=(f"{TOPIC}/0@19",)) == (0, 0)
    assert counts(reopen=("unknown_schema",)) == (0, 0)


def test_closed_cases_are_opened_again():
    assert counts(reopen=("bad_frame",)) == (0, 1)
    assert counts(close=("unknown_schema",), reopen=(f"{TOPIC}/0@19",)) == (1, 1)


@pytest.mark.parametrize("asked", ["bad_avro", f"{TOPIC}/1@4"])
def test_what_was_reopened_may_be_decoded_when_it_is_asked_for_again(asked):
    assert counts(reopen=(asked,)) == (0, 0)


@pytest.mark.parametrize("asked", ["no such code", f"{TOPIC}/1@5", f"{TOPIC}/2@0", "other/0@17"])
def test_what_cannot_have_been_reopened_is_refused(asked):
    with pytest.raises(CaseUnknownError):
        counts(reopen=(asked,))


@pytest.mark.parametrize("asked", ["bad_avro", f"{TOPIC}/0@16", f"{TOPIC}/2@17", "other/0@17"])
def test_what_means_no_record_is_refused_and_told_what_there_is(asked):
    with pytest.raises(CaseUnknownError) as caught:
        plan_closing("orders", HELD, read=READ, close=("bad_frame", asked), reopen=())

    assert str(caught.value) == (
        f"orders has no undecodable record {asked}; it has bad_frame 2 (first {TOPIC}/0@17), "
        f"unknown_schema 1 (first {TOPIC}/0@18), bad_frame 1 (closed, first {TOPIC}/0@19)"
    )


def test_a_table_without_cases_has_none_to_close():
    with pytest.raises(CaseUnknownError, match="it has none"):
        plan_closing("orders", [], read={}, close=("bad_frame",), reopen=())


def test_a_topic_may_look_like_anything():
    assert Meant.by(["a/1@2/3@4"]) == Meant(coordinates=frozenset({("a/1@2", 3, 4)}))
