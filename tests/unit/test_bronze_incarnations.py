"""A topic, a log or a cluster that is another one than the table has read (`guarantees` §2.7)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from orders_in_kafka import SOURCE, TOPIC, facts, ledger, ledger_of, topic  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.incarnations import doubtful
from cdc_lakehouse.bronze.plan import plan_drain
from cdc_lakehouse.errors import (
    ClusterChangedError,
    LogCutError,
    SourceEpochOldError,
    SourceEpochSpentError,
    SourceEpochTooHighError,
    TopicRecreatedError,
)
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake.progress import Progress

NEW = f"{TOPIC}@id2"
EPOCH_1 = Decided(source_epoch=1)


@pytest.mark.parametrize("end", [2, 5, 900], ids=["shorter", "as long", "longer"])
def test_a_topic_that_was_made_again_stops_the_table_however_long_it_is(end):
    with pytest.raises(TopicRecreatedError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, end), topic_id="id2"))

    error = caught.value
    assert (error.old_id, error.new_id, error.read, error.held) == ("id1", "id2", "0 [0, 5)", f"0 [0, {end})")


def test_an_opened_epoch_reads_the_new_topic_from_its_first_record_and_keeps_the_old_one():
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((2, 9), (0, 1), topic_id="id2"), decided=EPOCH_1)

    assert plan.ledger.sources == {
        SOURCE: {0: Progress(floor=0, end=5)},
        NEW: {0: Progress(floor=2, end=2, epochs=((2, 1),)), 1: Progress(floor=0, end=0, epochs=((0, 1),))},
    }
    assert plan.ledger.decisions == {"source_epoch": {"epoch": 1, "begun": [NEW], "left": {}}}
    assert (plan.start, plan.topic_ids) == ({TOPIC: {0: 2, 1: 0}}, {TOPIC: "id2"})
    assert (plan.amends, plan.ledger.seq) == (True, 4)


def test_what_the_old_topic_still_held_is_a_gap():
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, seen=8)}})
    plan = plan_drain(known, (TOPIC,), facts=facts((0, 3), topic_id="id2"), decided=EPOCH_1)

    assert plan.ledger.sources[SOURCE] == {0: Progress(floor=0, end=8, gaps=((5, 8),))}
    assert plan.ledger.decisions["source_epoch"]["left"] == {SOURCE: {"0": [5, 8]}}


def test_a_second_try_with_the_same_epoch_finds_it_opened():
    kafka = facts((0, 3), topic_id="id2")
    once = plan_drain(ledger(p0=5), (TOPIC,), facts=kafka, decided=EPOCH_1)
    again = plan_drain(once.ledger, (TOPIC,), facts=kafka, decided=EPOCH_1)

    assert (again.amends, again.ledger, again.start) == (False, once.ledger, {TOPIC: {0: 0}})


def test_an_epoch_that_was_opened_is_not_opened_again_for_the_next_topic():
    once = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 3), topic_id="id2"), decided=EPOCH_1)

    with pytest.raises(TopicRecreatedError):
        plan_drain(once.ledger, (TOPIC,), facts=facts((0, 3), topic_id="id3"), decided=EPOCH_1)


def test_an_epoch_below_the_present_one_is_refused():
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, epochs=((3, 4),))}})

    with pytest.raises(SourceEpochOldError) as caught:
        plan_drain(known, (TOPIC,), facts=facts((0, 5)), decided=Decided(source_epoch=2))

    assert (caught.value.asked, caught.value.known) == (2, 4)


@pytest.mark.parametrize("asked", [5, 2**53 - 1, 2**60 + 1])
def test_above_the_highest_number_of_a_person_no_epoch_is_opened(asked):
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, epochs=((3, 2**60),))}})

    with pytest.raises(SourceEpochSpentError) as caught:
        plan_drain(known, (TOPIC,), facts=facts((0, 5)), decided=Decided(source_epoch=asked))

    assert (caught.value.known, caught.value.highest) == (2**60, 2**53 - 1)


@pytest.mark.parametrize(
    ("asked", "highest"), [(4 + 10**9 + 1, 4 + 10**9), (2**53, 4 + 10**9), (2**63, 4 + 10**9)]
)
def test_an_epoch_that_would_use_up_the_numbers_is_refused(asked, highest):
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, epochs=((3, 4),))}})

    with pytest.raises(SourceEpochTooHighError) as caught:
        plan_drain(known, (TOPIC,), facts=facts((0, 5)), decided=Decided(source_epoch=asked))

    assert (caught.value.known, caught.value.highest) == (4, highest)


def test_an_epoch_at_the_end_of_all_numbers_is_followed_by_none():
    last = 2**53 - 1
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, epochs=((3, last - 1),))}})
    plan = plan_drain(known, (TOPIC,), facts=facts((0, 5)), decided=Decided(source_epoch=last))

    assert plan.ledger.epoch == last
    with pytest.raises(SourceEpochSpentError):
        plan_drain(plan.ledger, (TOPIC,), facts=facts((0, 5)), decided=Decided(source_epoch=last + 1))


def test_a_source_that_went_back_under_the_same_topic_gets_its_epoch_from_the_end_on():
    plan = plan_drain(ledger(p0=5, p1=7), (TOPIC,), facts=facts((0, 9), (0, 7)), decided=EPOCH_1)

    assert plan.ledger.sources == {
        SOURCE: {
            0: Progress(floor=0, end=5, epochs=((5, 1),)),
            1: Progress(floor=0, end=7, epochs=((7, 1),)),
        }
    }
    assert plan.start == {TOPIC: {0: 5, 1: 7}}


def test_of_several_topics_the_one_that_was_made_again_begins_anew_and_all_enter_the_epoch():
    other = f"{TOPIC}_archive"
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5)}, f"{other}@id9": {0: Progress(floor=0, end=4)}})
    kafka = ClusterFacts(
        "c1", {TOPIC: topic((0, 2), topic_id="id2"), other: topic((0, 6), name=other, topic_id="id9")}
    )
    plan = plan_drain(known, (TOPIC, other), facts=kafka, decided=EPOCH_1)

    assert plan.ledger.sources[f"{other}@id9"] == {0: Progress(floor=0, end=4, epochs=((4, 1),))}
    assert plan.start == {TOPIC: {0: 0}, other: {0: 4}}


@pytest.mark.parametrize("kafka", [(0, 4), (0, 0)], ids=["cut", "emptied"])
def test_a_log_that_ends_before_the_ledger_stops_the_table(kafka):
    with pytest.raises(LogCutError) as caught:
        plan_drain(ledger(p0=5, p1=2), (TOPIC,), facts=facts(kafka, (0, 2)))

    error = caught.value
    assert (error.topic, error.read, error.held) == (TOPIC, "0 [0, 5)", f"0 [0, {kafka[1]}), 1 [0, 2)")


def test_a_cut_log_is_read_again_under_a_name_of_its_own():
    """Its offsets are given away again: rows of one name would mean two records."""
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 4)), decided=EPOCH_1)
    later = plan_drain(plan.ledger, (TOPIC,), facts=facts((0, 6)))

    assert plan.sources == {TOPIC: f"{TOPIC}@id1~1"}
    assert plan.topic_ids == {TOPIC: "id1~1"}
    assert plan.start == {TOPIC: {0: 0}}
    assert (later.sources, later.amends) == (plan.sources, False)


def test_another_cluster_stops_the_table_even_under_the_same_names():
    with pytest.raises(ClusterChangedError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 9), cluster_id="c2", topic_id="id7"))

    assert (caught.value.old_id, caught.value.new_id) == ("c1", "c2")


@pytest.mark.parametrize(("topic_id", "source"), [("id7", f"{TOPIC}@id7"), ("id1", f"{TOPIC}@id1~1")])
def test_a_replaced_cluster_is_read_from_its_first_record_on(topic_id, source):
    kafka = facts((0, 9), cluster_id="c2", topic_id=topic_id)
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=kafka, decided=EPOCH_1)
    again = plan_drain(plan.ledger, (TOPIC,), facts=kafka)

    assert (plan.ledger.cluster_id, plan.sources, plan.start) == ("c2", {TOPIC: source}, {TOPIC: {0: 0}})
    assert again.amends is False


def test_a_table_that_read_nothing_yet_belongs_to_no_cluster():
    assert plan_drain(ledger(), (TOPIC,), facts=facts((0, 9), cluster_id="c2")).backlog == 9


@pytest.mark.parametrize(
    ("mark", "now", "asked"),
    [
        ((10, 3), PartitionOffsets(0, 12, leader_epoch=4), {(TOPIC, 0): (10, 3)}),
        ((10, 3), PartitionOffsets(0, 12, leader_epoch=2), {(TOPIC, 0): (10, 3)}),
        ((8, 3), PartitionOffsets(0, 12, leader_epoch=4), {(TOPIC, 0): (8, 3)}),
        ((15, 3), PartitionOffsets(0, 12, leader_epoch=4), {(TOPIC, 0): (10, 3)}),
        ((10, 3), PartitionOffsets(0, 12, leader_epoch=3), {}),
        ((10, 3), PartitionOffsets(0, 10, leader_epoch=4), {}),
        ((10, 3), PartitionOffsets(11, 12, leader_epoch=4), {}),
        ((10, 3), PartitionOffsets(0, 12), {}),
        (None, PartitionOffsets(0, 12, leader_epoch=4), {}),
    ],
    ids=[
        "another leader",
        "an older leader",
        "read beyond the look",
        "read less than the look",
        "the same leader",
        "no news",
        "aged out",
        "a broker that does not tell",
        "an older release",
    ],
)
def test_a_log_is_asked_about_when_another_leader_has_news(mark, now, asked):
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=10, mark=mark)}})
    kafka = ClusterFacts("c1", {TOPIC: TopicFacts(TOPIC, "id1", {0: now})})

    assert doubtful(known, [TOPIC, "not.there"], facts=kafka) == asked


def test_a_log_that_was_written_anew_stops_the_table_and_is_named():
    kafka = replace(facts((0, 15)), cut={(TOPIC, 0): 4})

    with pytest.raises(LogCutError) as caught:
        plan_drain(ledger(p0=10), (TOPIC,), facts=kafka)
    opened = plan_drain(ledger(p0=10), (TOPIC,), facts=kafka, decided=EPOCH_1)

    assert (caught.value.read, caught.value.held) == ("0 [0, 10)", "0 [0, 15); 0 was written anew from 4")
    assert (opened.sources, opened.start) == ({TOPIC: f"{SOURCE}~1"}, {TOPIC: {0: 0}})


def test_a_log_without_news_keeps_the_leader_that_it_was_read_under():
    """It was not asked whether it was cut since; a commit for the others must not make that forgotten."""
    read = {number: Progress(floor=0, end=5, mark=(5, 1)) for number in (0, 1)}
    offsets = {0: PartitionOffsets(0, 5, 2), 1: PartitionOffsets(0, 7, 2)}
    kafka = ClusterFacts("c1", {TOPIC: TopicFacts(TOPIC, "id1", offsets)})

    plan = plan_drain(ledger_of({SOURCE: read}), (TOPIC,), facts=kafka)

    assert plan.marks == {SOURCE: {1: (7, 2)}}
