"""What a bronze that goes back has to read again: from Kafka's facts, before anything is changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from orders_in_kafka import SOURCE, TOPIC, facts, ledger, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.standing import went_back
from cdc_lakehouse.errors import RepairRefusedError, TopicUnavailableError
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.repair.rewind_bronze import ReadAgain, plan_reading_again

NOW = ledger(p0=20, p1=8)
THEN = ledger(p0=12, p1=8)


def read_again(kafka: ClusterFacts | None, *, now: Ledger = NOW, then: Ledger = THEN) -> ReadAgain:
    def ask() -> ClusterFacts:
        if kafka is None:
            raise AssertionError("nobody has to ask")
        return kafka

    return plan_reading_again(now, went_back(now, then, step=now.seq), ask)


def test_offsets_that_kafka_holds_are_read_again_and_nothing_is_a_gap():
    found = read_again(facts((12, 25), (8, 8)))

    assert (found.ranges, found.lost) == ({SOURCE: {0: (12, 20)}}, {})
    assert found.ledger.sources[SOURCE][0] == Progress(floor=0, end=12, seen=20, known_to=20)
    assert found.ledger.sources[SOURCE][1] == Progress(floor=0, end=8)


@pytest.mark.parametrize(("earliest", "lost"), [(15, (12, 15)), (20, (12, 20)), (23, (12, 20))])
def test_offsets_that_retention_took_are_a_gap_as_far_as_bronze_had_read_them(earliest, lost):
    found = read_again(facts((earliest, 25), (8, 8)))

    progress = found.ledger.sources[SOURCE][0]
    assert (found.lost, progress.gaps, progress.end) == ({SOURCE: {0: lost}}, (lost,), lost[1])


def test_offsets_that_another_partition_lost_before_are_left_to_the_next_ingest():
    assert read_again(facts((12, 25), (9, 9))).lost == {}


def test_kafka_is_not_asked_where_no_offset_goes_back():
    assert read_again(None, then=NOW).ranges == {}


@pytest.mark.parametrize(
    ("kafka", "problem"),
    [
        (facts((12, 25), (8, 8), topic_id="id2"), "Kafka has not the log any more"),
        (facts((12, 25), (8, 8), cluster_id="c2"), "Kafka has not the log any more"),
        (facts((12, 15), (8, 8)), "Kafka has not the log any more"),
        (ClusterFacts("c1", {}), f"Kafka has no topic {TOPIC}"),
    ],
)
def test_bronze_stays_where_it_is_if_kafka_has_another_log(kafka, problem):
    with pytest.raises(RepairRefusedError, match=problem):
        read_again(kafka)


def test_a_topic_that_does_not_answer_is_tried_again():
    with pytest.raises(TopicUnavailableError):
        read_again(ClusterFacts("c1", {}, silent={TOPIC: "away"}))


def test_rows_of_an_earlier_incarnation_of_a_topic_do_not_go():
    newer = {SOURCE: {p: replace(x, epochs=((0, 1),)) for p, x in NOW.sources[SOURCE].items()}}
    now = ledger_of({**newer, f"{TOPIC}@id0": {0: Progress(floor=0, end=9)}})
    then = ledger_of({**newer, f"{TOPIC}@id0": {0: Progress(floor=0, end=5)}})

    with pytest.raises(RepairRefusedError, match=f"earlier incarnation of a topic .{TOPIC}@id0"):
        read_again(facts((0, 20), (0, 8)), now=now, then=then)
