"""Where a table stands when its log alone does not say: ledgers from rows, and after somebody's hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from orders_in_kafka import SOURCE, TOPIC, facts, ledger, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.plan import plan_drain
from cdc_lakehouse.bronze.standing import (
    MOST_GAPS,
    Difference,
    after_edit,
    after_restore,
    highest_applied,
    recovered,
    renumbered,
)
from cdc_lakehouse.errors import ForeignRowsError
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.commits import ForeignCommit, Told
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.state import TableState

OURS = ledger_of({SOURCE: {0: Progress(floor=2, end=20, gaps=((5, 7),), epochs=((15, 1),), seen=30)}})
DELETE = ForeignCommit(9, "DELETE")
RESTORE = ForeignCommit(9, "RESTORE", restored=4)


def state(*foreign: ForeignCommit, back: Ledger | None = None) -> TableState:
    restored = Told(back, 4) if foreign[0].restored is not None else None
    return TableState(9, OURS, stated=7, foreign=foreign, restored=restored, step=5)


def test_a_lost_document_is_made_again_from_the_rows():
    found, decision = recovered(ledger(), {SOURCE: {0: (2, 20), 1: (0, 3)}}, step=7)

    assert found.sources == {SOURCE: {0: Progress(floor=2, end=20), 1: Progress(floor=0, end=3)}}
    assert (found.seq, decision) == (7, {"recovered": "from rows"})


def test_a_table_that_lost_document_and_rows_begins_anew_behind_its_steps():
    found, _ = recovered(ledger(), {}, step=7)

    assert (found.sources, found.seq) == ({}, 7)


def test_what_was_recovered_is_committed_before_any_row():
    found, decision = recovered(ledger(), {SOURCE: {0: (2, 9)}}, step=7)
    plan = plan_drain(found, (TOPIC,), facts=facts((0, 9)), healed=decision)

    assert (plan.is_idle, plan.amends, plan.ledger.seq, plan.ledger.decisions) == (False, True, 8, decision)


def test_a_restored_table_reads_on_from_where_that_version_stood():
    """Transaction ids are not rewound by RESTORE, so steps go on from the newest one."""
    back = ledger_of({SOURCE: {0: Progress(floor=2, end=12, gaps=((5, 7),))}})
    found, decision = after_restore(state(RESTORE, back=back), OURS)

    assert found.sources == {
        SOURCE: {0: Progress(floor=2, end=12, gaps=((5, 7),), epochs=((15, 1),), seen=30, known_to=20)}
    }
    assert (found.seq, found.sources[SOURCE][0].epoch_at(16)) == (5, 1)
    assert decision == {"acknowledge_foreign": [{"version": 9, "operation": "RESTORE"}]}


def test_a_table_restored_to_before_its_first_row_begins_where_it_began():
    found, _ = after_restore(state(RESTORE), OURS)

    assert found.sources == {SOURCE: {0: Progress(floor=2, end=2, epochs=((15, 1),), seen=30, known_to=20)}}


def test_a_topic_that_the_restored_version_did_not_know_is_read_from_its_first_record():
    both = ledger_of({**OURS.sources, "other@id9": {0: Progress(floor=4, end=8)}})
    back = ledger_of({SOURCE: {0: Progress(floor=2, end=12)}})
    found, _ = after_restore(state(RESTORE, back=back), both)

    assert found.sources["other@id9"] == {0: Progress(floor=4, end=4, seen=8, known_to=8)}


def test_a_table_restored_to_a_version_ahead_of_it_holds_the_rows_of_that_version():
    """It was restored to an older version before: reading these records again would double them."""
    ours = ledger_of({SOURCE: {0: Progress(floor=2, end=12, epochs=((15, 1),), seen=20, known_to=20)}})
    ahead = ledger_of({SOURCE: {0: Progress(floor=2, end=18, gaps=((5, 7),), epochs=((15, 1),))}})
    found, _ = after_restore(state(RESTORE, back=ahead), ours)

    assert found.sources == {
        SOURCE: {0: Progress(floor=2, end=18, gaps=((5, 7),), epochs=((15, 1),), seen=20, known_to=20)}
    }


def test_a_version_ahead_whose_rows_are_of_another_source_epoch_now_is_refused():
    ours = ledger_of({SOURCE: {0: Progress(floor=2, end=12, epochs=((12, 2),))}})
    ahead = ledger_of({SOURCE: {0: Progress(floor=2, end=18, epochs=((15, 1),))}})

    with pytest.raises(ForeignRowsError, match="another source epoch"):
        after_restore(state(RESTORE, back=ahead), ours)


def test_rows_that_somebody_deleted_are_gaps():
    lost = Difference(lost={SOURCE: {0: ((3, 4), (18, 20))}}, held={SOURCE: {0: (2, 18)}})
    found, decision = after_edit(state(DELETE), OURS, lost)

    assert found.sources[SOURCE][0] == replace(OURS.sources[SOURCE][0], gaps=((3, 4), (5, 7), (18, 20)))
    assert found.seq == 5
    assert decision["lost"] == {SOURCE: {"0": [(3, 4), (18, 20)]}}


def test_a_restore_of_which_only_the_rows_tell_is_read_again_from_the_end_of_what_is_left():
    lost = Difference(lost={SOURCE: {0: ((3, 4), (12, 20))}}, held={SOURCE: {0: (2, 12)}})
    found, _ = after_edit(state(ForeignCommit(9, "RESTORE")), OURS, lost)

    assert found.sources[SOURCE][0] == Progress(
        floor=2, end=12, gaps=((3, 4), (5, 7)), epochs=((15, 1),), seen=30, known_to=20
    )


def test_a_restore_to_nothing_reads_all_again():
    lost = Difference(lost={SOURCE: {0: ((2, 20),)}}, held={})
    found, _ = after_edit(state(ForeignCommit(9, "RESTORE")), OURS, lost)

    assert (found.sources[SOURCE][0].end, found.sources[SOURCE][0].gaps) == (2, ())


def test_rows_that_changed_in_place_leave_the_ledger_as_it_is():
    found, decision = after_edit(state(DELETE), OURS, Difference(lost={}, held={SOURCE: {0: (2, 20)}}))

    assert found.sources == OURS.sources
    assert decision["lost"] == {}


def test_rows_that_are_not_ours_are_refused():
    with pytest.raises(ForeignRowsError) as caught:
        after_edit(state(DELETE), OURS, Difference(lost={}, held={}, strange=3))

    assert (caught.value.ours, caught.value.problem) == (7, "3 row(s) are not ours, or are there twice")


def test_rows_missing_all_over_a_table_are_refused():
    many = tuple((offset, offset + 1) for offset in range(0, 4 * MOST_GAPS, 2))
    wide = ledger_of({SOURCE: {0: Progress(floor=0, end=9 * MOST_GAPS)}})

    with pytest.raises(ForeignRowsError, match="rows are missing in 2000 places"):
        after_edit(state(DELETE), wide, Difference(lost={SOURCE: {0: many}}, held={}))


BEYOND = 2**63


def with_epochs(*partitions: tuple[tuple[int, int], ...]) -> Ledger:
    own = {n: Progress(floor=0, end=20, epochs=epochs) for n, epochs in enumerate(partitions)}
    found: Ledger = ledger_of({SOURCE: own})
    return found


def epochs_of(found: Ledger) -> list[tuple[tuple[int, int], ...]]:
    return [progress.epochs for progress in found.sources[SOURCE].values()]


def test_epochs_that_no_column_holds_are_numbered_on_in_their_order():
    stuck = with_epochs(((3, 2), (9, BEYOND), (12, BEYOND + 1)), ((5, BEYOND + 1),))

    found, decision = renumbered(stuck, applied=2)

    assert epochs_of(found) == [((3, 2), (9, 3), (12, 4)), ((5, 4),)]
    assert decision == {"epochs_renumbered": {str(BEYOND): 3, str(BEYOND + 1): 4}}
    assert renumbered(found, applied=2) == (found, {})


def test_an_epoch_that_silver_has_rows_of_keeps_its_number():
    high = 2**60
    stuck = with_epochs(((3, high), (9, BEYOND)))

    found, decision = renumbered(stuck, applied=high)

    assert epochs_of(found) == [((3, high), (9, high + 1))]
    assert decision == {"epochs_renumbered": {str(BEYOND): high + 1}}


def test_what_records_opened_above_the_highest_of_silver_is_left_alone():
    ours = with_epochs(((3, 2**60), (9, 2**60 + 1)))

    assert renumbered(ours, applied=2**60) == (ours, {})


def test_where_no_number_is_left_nothing_changes():
    stuck = with_epochs(((3, BEYOND - 1), (9, BEYOND)))

    assert renumbered(stuck, applied=BEYOND - 1) == (stuck, {})
    assert epochs_of(renumbered(stuck, applied=0)[0]) == [((3, 1), (9, 2))]


def test_the_highest_epoch_of_silver_is_that_of_its_rows_and_of_what_it_cleared():
    silver = ledger_of({SOURCE: {0: Progress(floor=0, end=10, epochs=((3, 2), (10, 7)))}})

    assert highest_applied(silver) == 2
    assert highest_applied(replace(silver, applied=Applied(reached=(4, 100)))) == 4
    assert highest_applied(replace(silver, applied=Applied(complete=5))) == 5
