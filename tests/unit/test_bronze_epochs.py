"""When full snapshots open a source epoch, and where each partition enters it (`cdc-semantics` rule 2.5)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from epoch_batches import (  # type: ignore[import-not-found]
    AGAIN,
    FIRST,
    NEW,
    OF_AN_OPEN_TRANSACTION,
    OLD,
    OLDER,
    OTHER,
    P0,
    P1,
    P2,
    THIRD,
    UNKNOWN_PAST,
    Bronze,
    Chunk,
    Read,
    Streamed,
    streaming,
)
from orders_in_kafka import SOURCE  # type: ignore[import-not-found]

from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.progress import Since
from cdc_lakehouse.silver.folding.clearing import cleared_by, is_overtaken


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
    bronze.takes({P1: [OTHER]})

    assert bronze.takes({P1: [AGAIN]}) == [2]
    assert bronze.epochs(1) == [0, 0, 1, 2]
    assert bronze.takes({P0: [AGAIN]}) == []
    assert bronze.epochs(0) == [0, 0, 1, 2]


def test_a_run_that_was_killed_leaves_the_boundary_where_its_drain_would_have_ended():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN], P1: [OTHER]}, until={P0: 9, P1: 6})

    assert bronze.takes({P1: [OTHER, OTHER]}, until={P1: 12}) == []
    assert bronze.takes({P1: [OTHER, OTHER]}, until={P1: 12}) == []
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


BLOCKING = Read(95, commit=950)
"""A row of a snapshot that interrupted the stream: it names the commit that the connector had come to."""


def test_events_behind_the_snapshot_are_of_its_epoch_in_a_partition_without_a_row_of_it():
    bronze = streaming(P0, P1, P2)

    assert bronze.takes({P0: [AGAIN], P1: [OLD, OTHER, NEW, OTHER], P2: [UNKNOWN_PAST]}) == [1]
    assert bronze.epochs(1) == [0, 0, 0, 0, 1, 1]
    assert bronze.epochs(2) == [0, 0, 1]


def test_events_behind_the_snapshot_are_of_its_epoch_in_a_later_batch_of_the_drain():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN], P1: [OLD]}, until={P1: 9})

    assert bronze.takes({P1: [OLD, NEW]}, until={P1: 9}) == []
    assert bronze.epochs(1) == [0, 0, 0, 0, 1]
    assert bronze.takes({P1: [NEW]}) == []
    assert bronze.epochs(1) == [0, 0, 0, 0, 1, 1]


def test_late_events_from_before_the_snapshot_stay_in_their_epoch():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN]})

    assert bronze.takes({P1: [OLD, NEW]}) == []
    assert bronze.epochs(1) == [0, 0, 0, 1]


def test_the_first_events_of_a_partition_behind_a_new_slot_are_of_its_epoch():
    bronze = streaming(P0)

    assert bronze.takes({P0: [AGAIN], P1: [OF_AN_OPEN_TRANSACTION, NEW]}) == [1]
    assert bronze.epochs(1) == [1, 1]


def test_first_events_of_the_old_slot_stay_in_its_epoch():
    """Behind them one names a commit from before the snapshot."""
    bronze = streaming(P0)

    assert bronze.takes({P0: [AGAIN], P1: [Streamed(None, 505), OLD, NEW]}) == [1]
    assert bronze.epochs(1) == [0, 0, 1]


def test_a_snapshot_that_interrupts_the_stream_is_met_at_the_commit_that_its_rows_name():
    bronze = streaming(P0, P1, P2)
    behind, before = Streamed(950, 700), Streamed(940, 960)

    assert bronze.takes({P0: [before, BLOCKING, behind], P1: [before, behind], P2: [Chunk(940)]}) == [1]
    assert bronze.epochs(1) == [0, 0, 0, 1]
    assert bronze.epochs(2) == [0, 0, 0]


def test_rows_of_an_incremental_snapshot_are_of_the_epoch_of_their_place_in_the_log():
    bronze = streaming(P0, P1)

    assert bronze.takes({P0: [BLOCKING], P1: [Chunk(940), OLD, Chunk(951), OTHER]}) == [1]
    assert bronze.epochs(1) == [0, 0, 0, 0, 1, 1]


def test_a_block_that_is_sent_again_behind_the_snapshot_stays_before_it_until_it_has_caught_up():
    bronze = streaming(P0, P1)
    again = [OLD, Streamed(950, 960)]

    assert bronze.takes({P0: [BLOCKING], P1: [*again, *again]}) == [1]
    assert bronze.epochs(1) == [0, 0, 0, 0, 0, 1]


def test_a_log_that_went_back_does_not_say_what_was_sent_behind_the_snapshot():
    bronze = streaming(P0, P1)
    of_another_life = Streamed(2_000, 2_010)

    assert bronze.takes({P0: [of_another_life, AGAIN], P1: [of_another_life, NEW]}, until={P1: 9}) == [1]
    assert bronze.progress(1).epochs == ((9, 1),)


def test_what_was_entered_by_an_event_is_not_moved_by_a_later_drain():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN], P1: [NEW]}, until={P1: 9})

    assert bronze.takes({P1: [OLD, NEW]}) == []
    assert bronze.epochs(1) == [0, 0, 1, 1, 1]
    assert bronze.takes({P0: [UNKNOWN_PAST, NEW]}) == []


def test_a_snapshot_whose_followers_were_held_before_it_says_so():
    """A drain of several batches may read a partition to its end before it meets the snapshot in another."""
    bronze = streaming(P0, P1)
    bronze.takes({P1: [NEW]}, until={P0: 9})

    assert bronze.takes({P0: [OLD, AGAIN]}) == [1]
    assert bronze.epochs(1) == [0, 0, 0]
    assert bronze.progress().beginnings[-1].since == Since(900, is_new_slot=True, overtaken=True)


def test_a_partition_that_entered_the_epoch_does_not_overtake_its_snapshot():
    bronze = streaming(P0, P1, P2)
    bronze.takes({P0: [AGAIN], P1: [NEW]})
    bronze.takes({P2: [OLD, AGAIN]})

    since = Since(900, is_new_slot=True)
    assert [bronze.progress(number).beginnings[-1].since for number in (0, 2)] == [since, since]


def test_the_first_event_of_a_later_slot_stands_behind_a_blocking_snapshot_though_it_names_no_commit():
    """It would be removed as a row that the snapshot lacks."""
    bronze = Bronze.empty()
    bronze.takes({P0: [FIRST], P1: [FIRST, OLD]})
    bronze.takes({P1: [BLOCKING]})

    assert bronze.takes({P0: [Streamed(None, 950)]}) == []
    assert bronze.epochs(0) == [0, 1]


@pytest.mark.parametrize("older", [Read(80), Read(89, slot=900)], ids=["older place", "older transaction"])
def test_an_older_snapshot_that_is_met_later_removes_nothing_of_the_newer_one(older):
    """One backlog holds both, no partition has rows of both, and its drain comes to the newer one first."""
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN]}, until={P1: 4})

    assert bronze.takes({P1: [OLD, older]}) == [2]
    since = bronze.progress(1).beginnings[-1].since
    assert since is not None
    assert since.overtaken
    assert cleared_by(Applied(), truncated=None, ended=older.tx_id, held=bronze.ledger).cleared is None


def test_a_snapshot_of_a_source_that_went_back_removes_what_it_lacks_once_a_person_says_so():
    """Its place in the log is below that of snapshots of the life before, which says nothing any more."""
    bronze = streaming(P0, P1)
    bronze.takes({P0: [AGAIN], P1: [NEW]})
    sources = {
        source: {number: progress.in_epoch(7) for number, progress in partitions.items()}
        for source, partitions in bronze.ledger.sources.items()
    }
    bronze.ledger = replace(bronze.ledger, sources=sources)

    bronze.takes({P1: [Read(20)]})

    cleared = cleared_by(Applied(), truncated=None, ended=20, held=bronze.ledger).cleared
    assert cleared == Place.beginning_of(7)


def test_a_snapshot_that_is_met_behind_an_older_one_removes_what_it_lacks():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [Read(80)]}, until={P1: 4})
    bronze.takes({P1: [OLD, AGAIN]})

    cleared = cleared_by(Applied(), truncated=None, ended=AGAIN.tx_id, held=bronze.ledger).cleared
    assert cleared == Place.beginning_of(2)


def test_silver_removes_nothing_for_a_snapshot_that_was_overtaken():
    overtaken, complete = streaming(P0, P1), streaming(P0, P1)
    overtaken.takes({P1: [NEW]})
    for bronze in (overtaken, complete):
        bronze.takes({P0: [AGAIN]})

    removed = [
        cleared_by(Applied(), truncated=None, ended=AGAIN.tx_id, held=bronze.ledger).cleared
        for bronze in (overtaken, complete)
    ]
    assert removed == [None, Place.beginning_of(1)]
    assert [is_overtaken(bronze.ledger, AGAIN.tx_id) for bronze in (overtaken, complete)] == [True, False]


def test_a_snapshot_that_is_met_behind_a_later_slot_takes_nothing_that_was_sent_between_the_two():
    """Partition 0 is read to its end, past the slot, before partition 1 shows the snapshot."""
    bronze = streaming(P0, P1)
    bronze.takes({P0: [Streamed(900, 910), Streamed(None, 1000), Streamed(1010, 1020)]})

    assert bronze.takes({P1: [Read(90, commit=900)]}) == []
    assert (bronze.epochs(0), bronze.epochs(1)) == ([0, 0, 0, 1, 1], [0, 0, 1])
    assert bronze.progress(1).beginnings[-1].since == Since(900, is_new_slot=False, overtaken=True)
    assert is_overtaken(bronze.ledger, 90)


def test_a_ledger_of_an_earlier_release_says_of_its_newest_epoch_how_far_the_log_went():
    bronze = streaming(P0, P1)
    bronze.takes({P1: [NEW]}, until={P0: 9})
    earlier = {
        number: replace(progress, reached=None) for number, progress in bronze.ledger.sources[SOURCE].items()
    }
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: earlier})
    bronze.takes({P1: [Streamed(None, 1000)]}, until={P0: 9})

    assert bronze.progress(1).reached == ((0, 910), (1, 1000))
    bronze.takes({P0: [OLD, AGAIN]})
    assert is_overtaken(bronze.ledger, AGAIN.tx_id)


def test_places_of_a_log_that_went_back_since_overtake_no_snapshot():
    """The snapshot at 400 shows that the source went back from 510, and the one at 450 is of that life."""
    bronze = streaming(P0, P1)
    bronze.takes({P0: [Read(40)], P1: [OLD]})
    bronze.takes({P1: [Streamed(400, 410)]})

    bronze.takes({P0: [Read(45, commit=450)], P1: [Streamed(410, 420)]})
    assert not is_overtaken(bronze.ledger, 45)


def test_places_of_epochs_before_a_persons_epoch_overtake_no_snapshot():
    bronze = streaming(P0, P1)
    bronze.takes({P0: [Streamed(900, 910), Streamed(None, 1000)]})
    opened = {number: progress.in_epoch(7) for number, progress in bronze.ledger.sources[SOURCE].items()}
    bronze.ledger = replace(bronze.ledger, sources={SOURCE: opened})

    bronze.takes({P1: [Read(20)]})
    assert not is_overtaken(bronze.ledger, 20)
