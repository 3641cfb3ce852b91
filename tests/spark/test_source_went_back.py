"""A source that was restored: silver stops before it refuses what is new, and a person goes on (rule 2.7)."""

from __future__ import annotations

from pathlib import Path

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import OLD, ORDERS, SOURCE, know, notes  # type: ignore[import-not-found]

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import SourceWentBackError
from cdc_lakehouse.lake.state import read_state


def change(at: str, number: int, note: str, *, lsn: int, tx: int | None = None, op: str = "u") -> KafkaRecord:
    """Of a transaction of its own, ten behind the commit before it."""
    place = at_lsn(lsn, tx=tx)
    after = None if op == "d" else {"id": number, "note": note}
    return OLD.record(CaseEvent(at=at, op=op, key={"id": number}, after=after, position=place))


def at_lsn(lsn: int, *, tx: int | None = None) -> SourcePosition:
    return SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn if tx is None else tx, order=1)


def read_again(at: str, number: int, note: str, *, lsn: int) -> KafkaRecord:
    """A row of an incremental snapshot."""
    place = SourcePosition(snapshot="incremental", sequence=(lsn, lsn))
    after = {"id": number, "note": note}
    return OLD.record(CaseEvent(at=at, op="r", key={"id": number}, after=after, position=place))


BEFORE = [
    change("0@0", 1, "first", lsn=500),
    change("0@1", 1, "undone by the restore", lsn=600),
    change("1@0", 2, "first", lsn=550),
    change("2@0", 3, "first", lsn=100),
]
RESTORED = [
    change("0@2", 1, "restored", lsn=400, tx=9400),
    change("1@1", 2, "restored", lsn=410, tx=9410),
    change("2@1", 3, "restored", lsn=420, tx=9420),
    change("0@3", 1, "beyond", lsn=700, tx=9700),
]


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("went_back").as_uri())
    know(chain)
    chain.ingest(ORDERS, BEFORE)
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def merged(template: Chain, tmp_path: Path) -> Chain:
    return template.copied_to(tmp_path)


def epochs(chain: Chain) -> dict[int, tuple[tuple[int, int], ...]]:
    state = read_state(chain.lake.bronze("orders"), table="orders")
    assert state is not None
    assert state.ledger is not None
    return {partition: progress.epochs for partition, progress in state.ledger.sources[SOURCE].items()}


def test_silver_stops_before_a_source_that_went_back(merged):
    merged.ingest(ORDERS, RESTORED)

    with pytest.raises(SourceWentBackError) as caught:
        merged.merge(ORDERS)

    assert str(caught.value) == (
        "the source of orders went back: 2 event(s) that were never sent before stand below older ones, "
        "first cases.orders/0@2 at row 400 behind commit 390, below row 600 behind commit 590; "
        "the table is in source epoch 0"
    )
    assert notes(merged.silver(ORDERS)) == {1: "undone by the restore", 2: "first", 3: "first"}


def test_an_epoch_that_a_person_opens_then_begins_where_the_source_turned_back(merged):
    merged.ingest(ORDERS, RESTORED)
    more = [change("1@2", 2, "newest", lsn=430, tx=9430)]

    result = merged.ingest(ORDERS, more, plan=merged.plan(ORDERS, more, source_epoch=1))

    assert result.decisions["source_epoch"]["from"] == {SOURCE: {"0": 2, "1": 1, "2": 1}}
    assert epochs(merged) == {0: ((2, 1),), 1: ((1, 1),), 2: ((1, 1),)}
    merged.merge(ORDERS)
    assert notes(merged.silver(ORDERS)) == {1: "beyond", 2: "newest", 3: "restored"}
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_a_snapshot_behind_the_restore_keeps_an_epoch_above_that_of_the_person(merged):
    snapshot = SourcePosition(snapshot="true", sequence=(None, 450), lsn=450, tx=9999)
    row = CaseEvent(at="0@3", op="r", key={"id": 1}, after={"id": 1, "note": "snapshot"}, position=snapshot)
    merged.ingest(ORDERS, [*RESTORED[:3], OLD.record(row)])

    merged.ingest(ORDERS, [], plan=merged.plan(ORDERS, [], source_epoch=2))

    assert epochs(merged)[0] == ((2, 2), (3, 3))
    merged.merge(ORDERS)
    assert notes(merged.silver(ORDERS)) == {1: "snapshot", 2: "restored", 3: "restored"}


def test_a_second_try_with_the_same_epoch_changes_nothing(merged):
    merged.ingest(ORDERS, RESTORED)
    merged.ingest(ORDERS, [], plan=merged.plan(ORDERS, [], source_epoch=1))

    assert merged.plan(ORDERS, [], source_epoch=1).is_idle


def test_an_epoch_begins_at_the_end_where_the_source_did_not_go_back(merged):
    merged.ingest(ORDERS, [change("0@2", 1, "newer", lsn=610)])
    merged.ingest(ORDERS, [], plan=merged.plan(ORDERS, [], source_epoch=1))

    assert epochs(merged) == {0: ((3, 1),), 1: ((1, 1),), 2: ((1, 1),)}


def test_a_source_that_goes_back_within_one_merge_is_noticed(chain):
    know(chain)
    chain.ingest(ORDERS, [*BEFORE, *RESTORED[:3]])

    with pytest.raises(SourceWentBackError) as caught:
        chain.merge(ORDERS)

    assert (caught.value.count, caught.value.coordinate) == (2, "cases.orders/0@2")


def test_a_failover_that_lost_a_moment_is_noticed_though_the_log_is_beyond_it_by_now(merged):
    lost = [change("0@2", 1, "lost", lsn=620), change("0@3", 1, "lost too", lsn=640)]
    after = [change("0@4", 1, "elected", lsn=630, tx=9630), change("0@5", 1, "beyond", lsn=700, tx=9700)]
    merged.ingest(ORDERS, [*lost, *after])

    with pytest.raises(SourceWentBackError) as caught:
        merged.merge(ORDERS)

    assert (caught.value.count, caught.value.coordinate) == (1, "cases.orders/0@4")


def test_a_block_that_is_sent_again_is_refused_and_counted(merged):
    merged.ingest(ORDERS, [change("1@1", 2, "", lsn=610, op="d")])
    merged.merge(ORDERS)
    again = [
        change("0@2", 1, "first", lsn=500),
        change("0@3", 1, "undone by the restore", lsn=600),
        change("1@2", 2, "first", lsn=550),
        change("0@4", 1, "new", lsn=620),
    ]
    merged.ingest(ORDERS, again)

    counts = merged.merge(ORDERS).counts

    assert (counts["read"], counts["refused"]) == (4, 3)
    assert notes(merged.silver(ORDERS)) == {1: "new", 3: "first"}


def test_a_block_that_is_sent_again_to_another_partition_is_no_source_that_went_back(merged):
    merged.ingest(ORDERS, [change("3@0", 4, "moved here", lsn=610), change("3@1", 1, "first", lsn=500)])

    assert merged.merge(ORDERS).counts["refused"] == 1
    assert notes(merged.silver(ORDERS))[1] == "undone by the restore"


def test_a_transaction_that_names_another_commit_when_it_is_sent_again_is_the_same(chain):
    know(chain)
    first = SourcePosition(sequence=(None, 500), lsn=500, tx=5, order=1)
    again = replace_sequence(first, commit=450)
    events = [
        CaseEvent(at=at, op="u", key={"id": 1}, after={"id": 1, "note": "one"}, position=position)
        for at, position in (("0@0", first), ("0@2", again))
    ]
    chain.ingest(ORDERS, [OLD.record(events[0]), change("0@1", 2, "two", lsn=600)])
    chain.merge(ORDERS)
    chain.ingest(ORDERS, [OLD.record(events[1])])

    assert chain.merge(ORDERS).counts["refused"] == 1


def unread(at: str, number: int, note: str, *, lsn: int, value_hex: str | None = None) -> KafkaRecord:
    """The same change without its key, or with bytes that nobody can read."""
    event = CaseEvent(
        at=at, op="u", after={"id": number, "note": note}, value_hex=value_hex, position=at_lsn(lsn)
    )
    return OLD.record(event)


def test_a_block_whose_first_copy_lacked_its_keys_was_sent_before(merged):
    merged.ingest(ORDERS, [unread("0@2", 1, "second", lsn=620), change("0@3", 1, "third", lsn=630)])
    merged.merge(ORDERS)
    merged.ingest(ORDERS, [change("0@4", 1, "second", lsn=620), change("0@5", 1, "third", lsn=630)])

    assert merged.merge(ORDERS).counts["refused"] == 2


def test_records_that_may_have_been_the_same_events_are_named(merged):
    junk = unread("0@2", 1, "second", lsn=620, value_hex="ff00")
    merged.ingest(ORDERS, [junk, change("0@3", 1, "third", lsn=630)])
    merged.merge(ORDERS)
    merged.ingest(ORDERS, [change("0@4", 1, "second", lsn=620)])

    with pytest.raises(SourceWentBackError) as caught:
        merged.merge(ORDERS)

    assert caught.value.doubt == (
        "; 1 record(s) before them are missing or could not be decoded, and may have been the same"
    )


def replace_sequence(position: SourcePosition, *, commit: int) -> SourcePosition:
    return position.model_copy(update={"sequence": (commit, position.lsn)})


def test_rows_of_a_snapshot_say_nothing_of_where_the_source_is(merged):
    merged.ingest(ORDERS, [read_again("0@2", 9, "old and untold", lsn=300)])

    assert merged.merge(ORDERS).counts["rows_inserted"] == 1
