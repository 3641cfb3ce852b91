"""When records open a source epoch, and where each partition enters it (`cdc-semantics` rule 2.5)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from epoch_batches import (  # type: ignore[import-not-found]
    BOTH,
    OTHER,
    P0,
    P1,
    P2,
    SECOND,
    SECOND_SOURCE,
    Bronze,
    Read,
    Streamed,
    line,
)
from orders_in_kafka import SOURCE, TOPIC  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.epochs import all_opened, decide_epochs
from cdc_lakehouse.errors import SourceEpochOldError
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Beginning, Log, Progress

FIRST, AGAIN, THIRD = Read(30), Read(90), Read(95)
OLD, OLDER = Streamed(500, 510), Streamed(490, 500)
NEW = Streamed(900, 910)
UNKNOWN_PAST = Streamed(None, 905)
OF_AN_OPEN_TRANSACTION = Streamed(None, 400)


def streaming(*places: tuple[str, int]) -> Bronze:
    """After its first snapshot, with two rows in each partition."""
    bronze = Bronze.empty()
    bronze.takes({place: [FIRST, OLD] for place in places})
    return bronze


def test_the_first_snapshot_of_a_table_opens_nothing():
    bronze = Bronze.empty()

    assert bronze.takes({P0: [FIRST, FIRST], P1: [FIRST]}) == []
    assert bronze.takes({P0: [FIRST, OF_AN_OPEN_TRANSACTION, OLD], P2: [FIRST]}) == []
    assert bronze.takes({P1: [FIRST, OLD], P2: [OLD, OLD]}) == []
    assert [bronze.epochs(number) for number in range(3)] == [[0] * 5, [0] * 3, [0] * 3]


def test_a_snapshot_behind_streamed_rows_opens_an_epoch_though_the_table_had_none():
    bronze = Bronze.empty()

    assert bronze.takes({P0: [OLDER, OLD, FIRST, NEW]}) == [1]
    assert bronze.epochs() == [0, 0, 1, 1]


def test_a_repeated_snapshot_opens_an_epoch_at_its_first_row_in_each_partition():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [OLD, AGAIN, AGAIN, NEW], P1: [AGAIN]}) == [1]
    assert bronze.epochs(0) == [0, 0, 0, 1, 1, 1]
    assert bronze.epochs(1) == [0, 0, 1]


def test_a_snapshot_that_goes_on_in_other_batches_and_attempts_is_one():
    bronze = streaming(P0)

    assert bronze.takes({P0: [AGAIN]}) == [1]
    assert bronze.takes({P0: [AGAIN, AGAIN]}) == []
    assert bronze.takes({P0: [AGAIN, NEW]}) == []
    assert bronze.epochs() == [0, 0, 1, 1, 1, 1, 1]


def test_a_snapshot_that_was_begun_again_after_a_crash_wins_over_its_first_rows():
    bronze = Bronze.empty()

    assert bronze.takes({P0: [FIRST, FIRST, AGAIN], P1: [AGAIN]}) == [1]
    assert bronze.epochs(0) == [0, 0, 1]
    assert bronze.epochs(1) == [1]


def test_two_snapshots_of_one_batch_are_told_apart_in_every_partition():
    bronze = streaming(P0, P1, P2)

    assert bronze.takes({P0: [THIRD], P1: [OLD, AGAIN, THIRD], P2: [AGAIN, NEW, THIRD]}) == [1, 2]
    assert bronze.epochs(0) == [0, 0, 2]
    assert bronze.epochs(1) == [0, 0, 0, 1, 2]
    assert bronze.epochs(2) == [0, 0, 1, 1, 2]


def test_snapshots_that_two_connectors_send_at_once_are_two_and_not_one_per_row():
    bronze = streaming(P0)

    assert bronze.takes({P0: [AGAIN, THIRD, AGAIN, THIRD]}) == [1, 2]
    assert bronze.epochs() == [0, 0, 1, 2, 2, 2]


def test_rows_of_incremental_snapshots_and_unreadable_ones_open_nothing():
    bronze = streaming(P0)

    assert bronze.takes({P0: [OTHER, OLD, OTHER]}) == []


def test_a_snapshot_without_a_transaction_opens_nothing():
    """MySQL: its snapshots cannot be told apart."""
    bronze = Bronze.empty()

    assert bronze.takes({P0: [Read(None), OLD]}) == []
    assert bronze.takes({P0: [Read(None), Streamed(1, 4), Streamed(2, 4)]}) == []
    assert bronze.progress().beginnings == ()


def test_what_was_open_at_the_snapshot_streams_in_its_epoch():
    bronze = streaming(P0)
    bronze.takes({P0: [AGAIN]})

    assert bronze.takes({P0: [OF_AN_OPEN_TRANSACTION, UNKNOWN_PAST, NEW]}) == []
    assert bronze.epochs() == [0, 0, 1, 1, 1, 1]


def test_a_partition_without_a_row_of_the_snapshot_enters_where_the_drain_ends():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [AGAIN], P1: [OLD]}, until={P1: 5}) == [1]
    assert bronze.progress(1).epochs == ((5, 1),)
    assert bronze.takes({P1: [OLD, OLD]}) == []
    assert bronze.takes({P1: [NEW]}) == []
    assert bronze.epochs(1) == [0, 0, 0, 0, 0, 1]


def test_a_partition_that_the_drain_does_not_read_enters_at_its_end():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [AGAIN]}) == [1]
    assert bronze.progress(1).epochs == ((2, 1),)


def test_a_partition_enters_earlier_where_its_rows_of_the_snapshot_come_in_a_later_batch():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN]}, until={P1: 9})

    assert bronze.takes({P1: [OLD, OLD, AGAIN]}, until={P1: 9}) == []
    assert bronze.epochs(1) == [0, 0, 0, 0, 1]
    assert bronze.progress(1).epochs == ((4, 1),)


def test_a_partition_enters_later_where_the_next_drain_begins_with_late_rows_of_before():
    """A partition whose broker was slow: nothing of the epoch is held there yet, so its boundary may move."""
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN]})

    assert bronze.takes({P1: [OLD, AGAIN]}) == []
    assert bronze.epochs(1) == [0, 0, 0, 1]


def test_a_partition_that_holds_rows_of_the_epoch_before_its_snapshot_opens_the_next_one():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN]})
    bronze.takes({P1: [OLD]})

    assert bronze.takes({P1: [AGAIN]}) == [2]
    assert bronze.epochs(1) == [0, 0, 1, 2]
    assert bronze.takes({P0: [AGAIN]}) == []
    assert bronze.epochs(0) == [0, 0, 1, 2]


def test_a_run_that_was_killed_leaves_the_boundary_where_its_drain_would_have_ended():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN], P1: [OLD]}, until={P0: 9, P1: 6})

    assert bronze.takes({P1: [OLD, OLD]}, until={P1: 12}) == []
    assert bronze.takes({P1: [OLD, OLD]}, until={P1: 12}) == []
    assert bronze.epochs(1) == [0, 0, 0, 0, 0, 0, 1]


def test_a_partition_that_is_two_snapshots_behind_goes_through_both():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN, THIRD]})

    assert bronze.takes({P1: [AGAIN, AGAIN]}) == []
    assert bronze.takes({P1: [THIRD]}) == []
    assert bronze.epochs(1) == [0, 0, 1, 1, 2]


def test_a_partition_that_shows_only_the_first_of_two_snapshots_enters_the_second_where_the_drain_ends():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN, THIRD]})
    bronze.takes({P1: [AGAIN]}, until={P1: 5})

    assert bronze.progress(1).epochs == ((2, 1), (5, 2))


def test_snapshots_that_share_no_partition_are_two_epochs():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN]})

    assert bronze.takes({P1: [THIRD]}) == [2]


def test_a_snapshot_behind_the_first_rows_of_a_new_partition_opens_an_epoch():
    bronze = streaming(P0)
    bronze.takes({P0: [AGAIN]})

    assert bronze.takes({P1: [NEW, THIRD]}) == [2]
    assert bronze.epochs(1) == [1, 2]


def test_a_new_partition_begins_in_the_newest_epoch():
    bronze = streaming(P0)
    bronze.takes({P0: [AGAIN]})

    assert bronze.takes({P1: [NEW]}) == []
    assert bronze.epochs(1) == [1]


def test_a_partition_that_appears_in_the_batch_that_opens_an_epoch_enters_it_where_the_drain_ends():
    bronze = streaming(P0)

    assert bronze.takes({P0: [AGAIN], P1: [OLD]}) == [1]
    assert bronze.progress(1).epochs == ((1, 1),)


def test_a_batch_that_was_refused_decides_the_same_when_it_comes_again():
    bronze = streaming(P0)
    before = bronze.ledger
    bronze.takes({P0: [AGAIN]})
    first = bronze.decided
    bronze.ledger = before
    bronze.takes({P0: [AGAIN]})

    assert bronze.decided == first


def test_a_zombie_decides_for_the_step_that_another_attempt_has_taken():
    """So its commit is refused like any other: the decision is part of the step."""
    bronze = streaming(P0)
    zombie = replace(bronze)
    bronze.takes({P0: [AGAIN]})
    zombie.takes({P0: [AGAIN]})

    assert zombie.ledger.seq == bronze.ledger.seq


def test_a_persons_epoch_is_that_of_the_snapshot_which_begins_with_it():
    bronze = streaming(P0, P1)
    opened = {p: progress.in_epoch(1) for p, progress in bronze.ledger.sources[SOURCE].items()}
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: opened})

    assert bronze.takes({P0: [AGAIN], P1: [AGAIN]}) == []
    assert bronze.epochs(0) == [0, 0, 1]


def test_a_partition_whose_snapshot_comes_behind_a_persons_word_stays_in_that_persons_epoch():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN]})
    opened = {p: progress.in_epoch(2) for p, progress in bronze.ledger.sources[SOURCE].items()}
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: opened})

    assert bronze.takes({P0: [AGAIN], P1: [AGAIN]}) == []
    assert (bronze.epochs(0), bronze.epochs(1)) == ([0, 0, 1, 2], [0, 0, 2])


def test_a_persons_epoch_is_not_that_of_a_snapshot_behind_its_rows():
    bronze = streaming(P0)
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: {0: bronze.progress().in_epoch(1)}})

    assert bronze.takes({P0: [NEW, AGAIN]}) == [2]
    assert bronze.epochs() == [0, 0, 1, 2]


def test_a_person_is_told_that_records_took_the_number_and_a_second_try_finds_ones_own():
    bronze = streaming(P0)
    bronze.takes({P0: [AGAIN]})
    with pytest.raises(SourceEpochOldError) as caught:
        Decided(source_epoch=1).epoch_to_open(bronze.ledger)

    assert (caught.value.asked, caught.value.known) == (1, 1)
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: {0: bronze.progress().in_epoch(2)}})
    assert Decided(source_epoch=2).epoch_to_open(bronze.ledger) is None


def test_a_topic_that_was_made_again_begins_with_its_snapshot_in_the_epoch_of_the_person():
    bronze = streaming(P0)
    anew = {SOURCE: bronze.ledger.sources[SOURCE], "again@id9": {0: Progress.begun(0, epoch=1)}}
    bronze.ledger, bronze.sources = replace(bronze.ledger, sources=anew), {TOPIC: "again@id9"}

    assert bronze.takes({P0: [FIRST, NEW]}) == []
    assert bronze.epochs() == [1, 1]
    assert bronze.ledger.sources[SOURCE][0].epochs == ()


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


def test_a_snapshot_that_comes_behind_a_new_slot_of_another_partition_is_of_its_epoch():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [UNKNOWN_PAST, NEW]})

    assert bronze.takes({P1: [AGAIN]}) == []
    assert bronze.epochs(1) == [0, 0, 1]


def test_the_log_of_an_epoch_is_forgotten_with_it():
    bronze = streaming(P0)
    assert bronze.progress().log == Log(510, knows_past=True)

    bronze.takes({P0: [AGAIN]})
    assert bronze.progress().log is None
    assert bronze.takes({P0: [UNKNOWN_PAST]}) == []
    assert bronze.progress().log == Log(905, knows_past=False)


def test_a_ledger_of_before_that_knows_no_snapshot_takes_the_next_one_for_a_repeated_one():
    bronze = Bronze.empty()
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: {0: Progress(floor=0, end=9)}})

    assert bronze.takes({P0: [FIRST]}) == [1]


def test_a_table_that_was_restored_reads_the_same_rows_into_the_same_epochs():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN, NEW], P1: [OLD, NEW]}, until={P1: 3})
    held = bronze.epochs(0), bronze.epochs(1)
    back = {p: progress.rewound(1, gaps=()) for p, progress in bronze.ledger.sources[SOURCE].items()}
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: back})

    assert bronze.takes({P0: [OLD, AGAIN, NEW], P1: [OLD, OLD, NEW]}) == []
    assert (bronze.epochs(0), bronze.epochs(1)) == held


def test_boundaries_that_lie_ahead_of_a_restored_table_stay_where_records_put_them():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN, THIRD], P1: [OLD]})
    back = {0: bronze.progress(0).rewound(1, gaps=()), 1: bronze.progress(1)}
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: back})

    assert bronze.takes({P0: [OLD]}) == []
    assert bronze.takes({P0: [AGAIN, THIRD], P1: [AGAIN, THIRD]}) == []
    assert (bronze.epochs(0), bronze.epochs(1)) == ([0, 0, 1, 2], [0, 0, 0, 1, 2])


def test_a_snapshot_that_shows_only_after_a_restore_leaves_the_boundary_behind_it():
    ahead = Progress(floor=0, end=2, epochs=((5, 2),), beginnings=(Beginning(5, 95, opened=True),))
    other = Progress(floor=0, end=9, epochs=((7, 1),), beginnings=(Beginning(7, 90, opened=True),))
    bronze = Bronze.empty()
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: {0: ahead, 1: other}})

    assert bronze.takes({P0: [OLD, AGAIN, AGAIN, THIRD]}) == []
    assert bronze.epochs(0) == [0, 0, 0, 1, 1, 2]


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
        Beginning(0, 30, opened=False),
        Beginning(2, 90, opened=True),
        Beginning(5, None, opened=True),
    )
    assert bronze.progress().noticed == {1, 2}


def test_a_ledger_that_was_written_before_loads_without_what_it_does_not_know():
    document = {"floor": 0, "end": 3, "gaps": [], "epochs": []}
    text = Bronze.empty().ledger.to_json().replace('"sources": {}', f'"sources": {{"{SOURCE}": {{"0": %s}}}}')
    ledger = Ledger.from_json(text % str(document).replace("'", '"'), table="orders")

    assert ledger is not None
    assert ledger.sources == {SOURCE: {0: Progress(floor=0, end=3)}}


def test_a_record_of_a_topic_that_is_not_read_decides_nothing():
    """The commit refuses such a batch."""
    bronze = streaming(P0)
    decision = decide_epochs(bronze.ledger, [], sources={TOPIC: SOURCE}, planned={}, added={})

    assert (decision.opened, decision.told()) == ((), {})
    assert SECOND_SOURCE not in decision.ledger.sources


def test_boundaries_that_a_restore_left_ahead_are_all_kept():
    """One of them by where a drain had ended, one by the snapshot's own row."""
    entered = Progress(floor=0, end=8, epochs=((3, 1), (6, 2)), beginnings=(Beginning(6, 95, opened=True),))
    told = Progress(
        floor=0,
        end=8,
        epochs=((2, 1), (7, 2)),
        beginnings=(Beginning(2, 90, opened=True), Beginning(7, 95, opened=True)),
    )
    by_drains = Progress(floor=0, end=8, epochs=((4, 1), (5, 2)))
    bronze = Bronze.empty()
    back = {p: each.rewound(1, gaps=()) for p, each in enumerate((entered, told, by_drains))}
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: back})

    assert bronze.takes({P0: [OLD, OLD], P1: [OLD]}) == []
    assert bronze.progress(0).epochs == entered.epochs
    assert bronze.progress(1).epochs == told.epochs
    assert bronze.progress(2).epochs == by_drains.epochs


def test_a_persons_epoch_behind_a_restore_is_the_persons_own():
    opened = Progress(floor=0, end=8, epochs=((3, 1),), beginnings=(Beginning(3, 90, opened=True),))

    anew = opened.rewound(1, gaps=()).in_epoch(2)

    assert anew.epochs == ((1, 2),)
    assert anew.noticed == frozenset()
    assert anew.beginnings == ()
