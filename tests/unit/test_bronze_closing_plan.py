"""Which cases a person means, by code as it stood and by coordinate: decisions on values."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.closing_plan import decisions_about, plan_closing
from cdc_lakehouse.errors import CaseUnknownError, DecisionOutdatedError
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.quarantine import Case, name_of_cases

TOPIC = "shop.public.orders"
MONDAY = [
    Case(TOPIC, 0, 17, "bad_frame", topic_id="id"),
    Case(TOPIC, 1, 3, "bad_frame", topic_id="id"),
]
UNKNOWN = Case(TOPIC, 0, 18, "unknown_schema", topic_id="id")
CLOSED = Case(TOPIC, 0, 19, "bad_frame", topic_id="id", closed="attempt-1")
LISTED = [*MONDAY, UNKNOWN, CLOSED]
FRIDAY = Case(TOPIC, 1, 4, "bad_frame", topic_id="id")

BAD_FRAMES = "bad_frame:2records@f3c0c5317e7e"
BAD_FRAMES_ON_FRIDAY = name_of_cases("bad_frame", [*MONDAY, FRIDAY])
UNKNOWN_SCHEMA = name_of_cases("unknown_schema", [UNKNOWN])

READ = {f"{TOPIC}@id": {0: Progress(floor=0, end=20), 1: Progress(floor=0, end=5)}}


def counts(
    *, close: tuple[str, ...] = (), reopen: tuple[str, ...] = (), listed: list[Case] = LISTED
) -> tuple[int, int]:
    named = (frozenset(names) if names else None for names in (close, reopen))
    plan = plan_closing("orders", listed, read=READ, close=next(named), reopen=next(named))
    return plan.closed, plan.reopened


def closed_by(attempt: str, cases: list[Case]) -> list[Case]:
    return [Case(c.topic, c.partition, c.offset, c.code, topic_id=c.topic_id, closed=attempt) for c in cases]


def test_a_name_means_all_open_records_of_a_code_and_a_coordinate_one():
    assert counts(close=(BAD_FRAMES,)) == (2, 0)
    assert counts(close=(f"{TOPIC}/0@18",)) == (1, 0)
    assert counts(close=(BAD_FRAMES, f"{TOPIC}/0@17", f"{TOPIC}/0@18")) == (3, 0)
    assert counts(close=(f"{TOPIC}@id/0@18",)) == (1, 0)


def test_what_monday_closed_is_done_on_friday_and_a_record_of_friday_stays_open():
    after = [*closed_by("attempt-2", MONDAY), UNKNOWN, CLOSED, FRIDAY]

    assert counts(close=(BAD_FRAMES,), listed=after) == (0, 0)


def test_a_record_that_came_since_outdates_the_decision_and_the_new_one_is_printed():
    with pytest.raises(DecisionOutdatedError) as caught:
        counts(close=(BAD_FRAMES,), listed=[*LISTED, FRIDAY])

    assert (caught.value.parameter, caught.value.named) == ("close_cases", f"`orders={BAD_FRAMES}`")
    assert caught.value.standing == f"`orders={BAD_FRAMES_ON_FRIDAY}`"
    assert counts(close=(BAD_FRAMES_ON_FRIDAY,), listed=[*LISTED, FRIDAY]) == (3, 0)


@pytest.mark.parametrize(
    ("named", "standing"),
    [
        ("bad_frame", f"`orders={BAD_FRAMES}`"),
        ("bad_frame:2records@000000000000", f"`orders={BAD_FRAMES}`"),
        ("unknown_schema", f"`orders={UNKNOWN_SCHEMA}`"),
    ],
)
def test_a_code_without_its_records_closes_nothing_and_prints_what_would(named: str, standing: str):
    with pytest.raises(DecisionOutdatedError) as caught:
        counts(close=(named,))

    assert caught.value.standing == standing


def test_a_table_alone_closes_nothing_and_prints_every_code():
    with pytest.raises(DecisionOutdatedError) as caught:
        plan_closing("orders", LISTED, read=READ, close=frozenset())

    assert caught.value.named == "nothing"
    assert caught.value.standing == f"`orders={BAD_FRAMES},{UNKNOWN_SCHEMA}`"


def test_a_bare_code_of_which_all_cases_are_closed_is_no_decision():
    with pytest.raises(DecisionOutdatedError, match="is nothing"):
        counts(close=("bad_frame",), listed=[CLOSED])


def test_what_is_done_already_is_no_work_and_no_error():
    assert counts(close=(f"{TOPIC}/0@19",)) == (0, 0)
    assert counts(close=(name_of_cases("bad_frame", [CLOSED]),)) == (0, 0)
    assert counts(reopen=(UNKNOWN_SCHEMA,)) == (0, 0)


def test_closed_cases_are_opened_again_as_they_stand():
    assert counts(reopen=(name_of_cases("bad_frame", [CLOSED]),)) == (0, 1)
    assert counts(close=(UNKNOWN_SCHEMA,), reopen=(f"{TOPIC}/0@19",)) == (1, 1)
    with pytest.raises(DecisionOutdatedError) as caught:
        counts(reopen=("bad_frame",))
    assert caught.value.standing == f"`orders={name_of_cases('bad_frame', [CLOSED])}`"


@pytest.mark.parametrize("asked", ["bad_avro:1records@0123456789ab", f"{TOPIC}/1@4"])
def test_what_was_reopened_may_be_decoded_when_it_is_asked_for_again(asked):
    assert counts(reopen=(asked,)) == (0, 0)


@pytest.mark.parametrize("asked", ["no such code", f"{TOPIC}/1@5", f"{TOPIC}/2@0", "other/0@17"])
def test_what_cannot_have_been_reopened_is_refused(asked):
    with pytest.raises(CaseUnknownError):
        counts(reopen=(asked,))


@pytest.mark.parametrize("asked", ["bad_avro", f"{TOPIC}/0@16", f"{TOPIC}/2@17", "other/0@17"])
def test_what_means_no_record_is_refused_and_told_what_there_is(asked):
    with pytest.raises(CaseUnknownError) as caught:
        counts(close=(BAD_FRAMES, asked))

    assert str(caught.value) == (
        f"orders has no undecodable record {asked}; it has {BAD_FRAMES} (first {TOPIC}/0@17), "
        f"{UNKNOWN_SCHEMA} (first {TOPIC}/0@18), {name_of_cases('bad_frame', [CLOSED])} "
        f"(closed, first {TOPIC}/0@19)"
    )


def test_a_table_without_cases_has_none_to_close():
    with pytest.raises(CaseUnknownError, match="it has none"):
        plan_closing("orders", [], read={}, close=frozenset({"bad_frame"}))


def test_an_offset_of_a_topic_that_was_made_again_says_which_topic_it_means():
    again = Case(TOPIC, 0, 17, "bad_frame", topic_id="id2")
    read = {**READ, f"{TOPIC}@id2": {0: Progress(floor=0, end=18)}}
    listed = [*closed_by("attempt-2", MONDAY), again]

    with pytest.raises(DecisionOutdatedError) as caught:
        plan_closing("orders", listed, read=read, close=frozenset({f"{TOPIC}/0@17"}))

    assert caught.value.standing == f"`orders={TOPIC}@id2/0@17`"
    plan = plan_closing("orders", listed, read=read, close=frozenset({f"{TOPIC}@id2/0@17"}))
    assert plan.closed == 1


def test_the_same_offset_of_another_incarnation_is_another_case():
    assert name_of_cases("bad_frame", [Case(TOPIC, 0, 17, "bad_frame", topic_id="id2")]) != name_of_cases(
        "bad_frame", [Case(TOPIC, 0, 17, "bad_frame", topic_id="id")]
    )


def test_the_decisions_about_what_waits_are_ready_to_be_pasted():
    waiting = [case for case in LISTED if case.closed is None]

    assert decisions_about("orders", waiting) == [f"orders={BAD_FRAMES}", f"orders={UNKNOWN_SCHEMA}"]
