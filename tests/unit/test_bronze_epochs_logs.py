"""Source epochs of new slots and of several topics; what a ledger remembers and a report tells of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from epoch_batches import (  # type: ignore[import-not-found]
    AGAIN,
    BOTH,
    FIRST,
    NEW,
    OF_AN_OPEN_TRANSACTION,
    OLD,
    OLDER,
    OTHER,
    P0,
    P1,
    SECOND,
    SECOND_SOURCE,
    UNKNOWN_PAST,
    Bronze,
    Read,
    Streamed,
    line,
    streaming,
)
from orders_in_kafka import SOURCE, TOPIC  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.epochs import all_opened, decide_epochs
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Beginning, Log, Progress, Since


def test_a_partition_that_the_drain_does_not_read_enters_at_its_end():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [AGAIN]}) == [1]
    assert bronze.progress(1).epochs == ((2, 1),)


def test_first_snapshots_of_several_topics_open_nothing():
    bronze = Bronze.empty(BOTH)

    assert bronze.takes({P0: [FIRST, OLD], (SECOND, 0): [AGAIN, NEW]}) == []


def test_a_repeated_snapshot_of_one_topic_is_an_epoch_of_the_whole_table():
    bronze = Bronze.empty(BOTH)
    bronze.takes({P0: [FIRST, OLD], (SECOND, 0): [FIRST, OLD]})

    assert bronze.takes({(SECOND, 0): [AGAIN]}) == [1]
    assert bronze.progress(0, TOPIC).epochs == ((2, 1),)


def test_a_topic_that_comes_later_with_a_snapshot_has_an_epoch_to_itself():
    """It may be the same table under a new name: its snapshot is newer. The other topics need no boundary."""
    bronze = Bronze.empty(BOTH)
    bronze.takes({P0: [FIRST, OLD]})

    assert bronze.takes({(SECOND, 0): [AGAIN, NEW], (SECOND, 1): [AGAIN]}) == [1]
    assert bronze.epochs(0, SECOND) == [1, 1]
    assert bronze.progress(0, TOPIC).epochs == ()


def test_a_slot_that_begins_anew_opens_an_epoch_where_its_log_begins():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [OLD, UNKNOWN_PAST, UNKNOWN_PAST, NEW], P1: [OLD]}) == [1]
    assert bronze.epochs(0) == [0, 0, 0, 1, 1, 1]
    assert bronze.progress(1).epochs == ((3, 1),)


def test_all_partitions_in_which_a_new_slot_shows_enter_one_epoch():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [UNKNOWN_PAST, NEW], P1: [OLD, UNKNOWN_PAST]}) == [1]
    assert (bronze.epochs(0), bronze.epochs(1)) == ([0, 0, 1, 1], [0, 0, 0, 1])


def test_a_log_that_is_sent_again_from_its_begin_is_no_new_slot():
    bronze = Bronze.empty()
    bronze.takes({P0: [FIRST, OF_AN_OPEN_TRANSACTION, Streamed(None, 505), OLDER, OLD]})

    assert bronze.takes({P0: [OF_AN_OPEN_TRANSACTION, Streamed(None, 505), OLDER, OLD, NEW]}) == []


def test_a_log_that_never_knew_its_past_has_no_new_slot():
    """Other sources than PostgreSQL do not name the commit before."""
    bronze = Bronze.empty()

    assert bronze.takes({P0: [Streamed(None, 1), Streamed(None, 2)]}) == []
    assert bronze.takes({P0: [Streamed(None, 3)]}) == []


def test_a_snapshot_explains_the_new_slot_behind_it_in_all_partitions():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [UNKNOWN_PAST, NEW], P1: [AGAIN, UNKNOWN_PAST]}) == [1]
    assert (bronze.epochs(0), bronze.epochs(1)) == ([0, 0, 1, 1], [0, 0, 1, 1])
    assert [each["why"] for each in bronze.ledger.decisions["epochs_opened"]] == ["full snapshot"]


def test_a_slot_behind_events_of_an_expected_epoch_opens_the_next_one():
    """The events at 2 and 3 came behind the snapshot of transaction 30, of which the partition has no row."""
    bronze = Bronze.empty()
    first = [
        Read(10, slot=110),
        Read(20, slot=120),
        Streamed(None, 140),
        Streamed(145, 150),
        Streamed(None, 155),
    ]

    assert bronze.takes({P0: first, P1: [Read(30, slot=130), Read(40, slot=160)]}) == [1, 2, 3]
    assert bronze.epochs(0) == [0, 1, 2, 2, 3]


def test_a_snapshot_that_comes_behind_a_new_slot_of_another_partition_is_of_its_epoch():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [UNKNOWN_PAST, NEW]})

    assert bronze.takes({P1: [AGAIN]}) == []
    assert bronze.epochs(1) == [0, 0, 1]


def test_the_log_of_an_epoch_is_forgotten_with_it():
    bronze = streaming(P0)
    assert bronze.progress().log == Log(510, knows_past=True, last=(500, 510))

    bronze.takes({P0: [AGAIN]})
    assert bronze.progress().log is None
    assert bronze.takes({P0: [UNKNOWN_PAST]}) == []
    assert bronze.progress().log == Log(905, knows_past=False, last=(0, 905))


def test_a_ledger_of_before_that_knows_no_snapshot_takes_the_next_one_for_a_repeated_one():
    bronze = Bronze.empty()
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: {0: Progress(floor=0, end=9)}})

    assert bronze.takes({P0: [FIRST]}) == [1]


def test_rows_of_one_partition_in_several_files_are_taken_in_their_order():
    """Tasks end in any order, and each names the first row of the snapshot that it met."""
    bronze = streaming(P0)
    files = [line(*P0, 4, [AGAIN, UNKNOWN_PAST, NEW]), line(*P0, 2, [OLD, AGAIN])]
    span = {SOURCE: {0: (2, 7)}}
    decision = decide_epochs(bronze.ledger, files, sources=bronze.sources, planned=span, added=span)

    assert [each.epoch for each in decision.opened] == [1]
    assert decision.ledger.sources[SOURCE][0].epochs == ((3, 1),)


def test_what_was_opened_is_told_with_its_reason_and_boundaries():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN], P1: [OLD]}, until={P1: 7})
    told = {
        "epoch": 1,
        "why": "full snapshot",
        "tx_id": 90,
        "from": {SOURCE: {"0": 2, "1": 7}},
    }

    assert bronze.ledger.decisions == {"epochs_opened": [told]}
    assert all_opened([bronze.ledger, bronze.ledger]) == {"epochs_opened": [told, told]}
    bronze.takes({P0: [UNKNOWN_PAST, NEW, Streamed(None, 990)]})
    assert bronze.ledger.decisions["epochs_opened"][0]["why"] == "new slot"
    bronze.takes({P0: [NEW]})
    assert bronze.ledger.decisions == {}


def test_what_a_partition_met_is_in_the_ledger():
    bronze = streaming(P0)
    bronze.takes({P0: [AGAIN, Streamed(None, 905), NEW, Streamed(None, 950)]})

    assert bronze.progress().beginnings == (
        Beginning(0, 30, opened=False, since=Since(300, is_new_slot=True)),
        Beginning(2, 90, opened=True, since=Since(900, is_new_slot=True)),
        Beginning(5, None, opened=True),
    )
    assert bronze.progress().noticed == {1, 2}


def test_a_ledger_that_was_written_before_loads_without_what_it_does_not_know():
    document = {"floor": 0, "end": 3, "gaps": [], "epochs": [], "beginnings": [[1, 30, 0]]}
    text = Bronze.empty().ledger.to_json().replace('"sources": {}', f'"sources": {{"{SOURCE}": {{"0": %s}}}}')
    ledger = Ledger.from_json(text % str(document).replace("'", '"'), table="orders")

    assert ledger is not None
    known = Progress(floor=0, end=3, beginnings=(Beginning(1, 30, opened=False),))
    assert ledger.sources == {SOURCE: {0: known}}


def test_a_record_of_a_topic_that_is_not_read_decides_nothing():
    """The commit refuses such a batch."""
    bronze = streaming(P0)
    decision = decide_epochs(bronze.ledger, [], sources={TOPIC: SOURCE}, planned={}, added={})

    assert (decision.opened, decision.to_decisions()) == ((), {})
    assert SECOND_SOURCE not in decision.ledger.sources


@pytest.mark.parametrize(
    ("batches", "turned"),
    [
        ([[Streamed(490, 500), Streamed(500, 510)]], None),
        ([[Streamed(490, 500), Streamed(480, 485), Streamed(900, 910)]], 1),
        ([[Streamed(490, 500)], [Streamed(480, 485), Streamed(900, 910)]], 1),
        ([[Streamed(490, 500)], [Streamed(490, 495)]], 1),
        ([[Streamed(490, 500), OTHER, Streamed(None, 400), Streamed(400, 410)], [Streamed(900, 910)]], 2),
        ([[Streamed(490, 500)], [UNKNOWN_PAST, NEW]], None),
    ],
    ids=["never", "within a batch", "between two", "within a commit", "without its past", "new slot"],
)
def test_where_a_log_turned_back_is_known_also_when_it_goes_beyond_again(batches, turned):
    bronze = Bronze.empty()
    for batch in batches:
        bronze.takes({P0: batch})

    assert bronze.progress().turned == turned
