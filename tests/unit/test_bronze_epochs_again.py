"""Source epochs where a batch comes again, a table went back, or a person decides too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from epoch_batches import (  # type: ignore[import-not-found]
    AGAIN,
    FIRST,
    NEW,
    OLD,
    P0,
    P1,
    THIRD,
    Bronze,
    streaming,
)
from orders_in_kafka import SOURCE, TOPIC  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.errors import SourceEpochOldError
from cdc_lakehouse.lake.progress import Beginning, Progress


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
