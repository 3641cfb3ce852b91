"""The ledger as a value: its document and the arithmetic on it (`architecture` §5)."""

from __future__ import annotations

import json

import pytest

from cdc_lakehouse.errors import LedgerVersionError
from cdc_lakehouse.lake.ledger import (
    Kind,
    Ledger,
    by_topic,
    first_incarnations,
    incarnation_of,
    incarnations,
    present,
    topic_of,
)
from cdc_lakehouse.lake.progress import Beginning, Log, Progress, Since

SOURCE = "shop.public.orders@id1"


def ledger(**changes: object) -> Ledger:
    known = {
        "kind": Kind.BRONZE,
        "pipeline": "shop",
        "table": "orders",
        "cluster_id": "c1",
        "seq": 4,
        "attempt": "20260101T000000Z-0badcafe",
        "sources": {SOURCE: {0: Progress(floor=2, end=10, gaps=((4, 6),), epochs=((2, 0), (7, 1)))}},
        "added": {SOURCE: {0: (8, 10)}},
        "seen_through": "2026-01-01T00:00:00+00:00",
    }
    return Ledger(**{**known, **changes})  # type: ignore[arg-type]


def document(**changes: object) -> str:
    return json.dumps({**json.loads(ledger().to_json()), **changes})


def test_a_ledger_survives_its_document():
    assert Ledger.from_json(ledger().to_json(), table="orders") == ledger()


def test_what_records_said_of_their_source_survives_the_document():
    since = Since(805, is_new_slot=True)
    beginnings = Beginning(2, 811, opened=False, since=since), Beginning(7, None, opened=True)
    log = Log(9, knows_past=True, last=(7, 9))
    progress = Progress(
        floor=2,
        end=10,
        epochs=((7, 1),),
        beginnings=beginnings,
        log=log,
        turned=8,
        reached=((0, 6), (1, 9)),
    )
    known = ledger(sources={SOURCE: {0: progress}})

    assert Ledger.from_json(known.to_json(), table="orders") == known


def test_rows_that_were_decoded_again_are_told_until_silver_knows_them():
    within = {SOURCE: {0: (3, 9)}}
    once = ledger().redecoded(5, within, attempt="a", known=0)
    twice = once.redecoded(1, within, attempt="b", known=3)

    assert [redo.seq for redo in twice.redo] == [5, 6]
    assert [redo.seq for redo in once.redecoded(1, within, attempt="b", known=5).redo] == [6]
    assert (twice.seq, twice.added, twice.sources) == (6, {}, ledger().sources)
    assert Ledger.from_json(twice.to_json(), table="orders") == twice


def test_rows_are_counted_from_the_first_commit_on_and_the_count_survives_the_document():
    empty = ledger(seq=0, sources={})
    first = ledger(seq=1).counting(3, behind=empty)
    second = ledger(seq=2).counting(4, behind=first)

    assert (first.counted, second.counted) == ((0, 3), (0, 7))
    assert Ledger.from_json(second.to_json(), table="orders") == second


def test_rows_of_a_table_that_nobody_counted_are_counted_from_now_on():
    before = ledger(seq=5)

    assert ledger(seq=6).counting(4, behind=before).counted == (5, 4)


def test_a_ledger_of_a_release_that_counted_no_rows_still_loads():
    known = json.loads(document())
    del known["counted"]

    assert Ledger.from_json(json.dumps(known), table="orders") == ledger()


@pytest.mark.parametrize("text", ["", "not JSON", "[]", "17", '{"v": 1, "note": "by hand"}', '{"seq": 3}'])
def test_metadata_of_somebody_else_is_no_ledger(text):
    assert Ledger.from_json(text, table="orders") is None


def test_a_ledger_of_a_newer_release_is_refused():
    with pytest.raises(LedgerVersionError) as caught:
        Ledger.from_json(document(v=2), table="orders")

    assert (caught.value.table, caught.value.found, caught.value.known) == ("orders", "2", 1)


def test_what_a_later_release_adds_to_the_document_is_ignored():
    assert Ledger.from_json(document(remark="later"), table="orders") == ledger()


def test_a_step_moves_the_end_and_counts_one_up():
    after = ledger().advanced({SOURCE: {0: (10, 15), 1: (3, 7)}}, attempt="b", seen_through=None)

    assert (after.seq, after.attempt) == (5, "b")
    assert after.added == {SOURCE: {0: (10, 15), 1: (3, 7)}}
    assert after.sources[SOURCE][0] == Progress(floor=2, end=15, gaps=((4, 6),), epochs=((2, 0), (7, 1)))
    assert after.sources[SOURCE][1] == Progress(floor=3, end=7, epochs=((3, 1),))


@pytest.mark.parametrize(
    ("seen", "newest"),
    [
        (None, "2026-01-01T00:00:00+00:00"),
        ("2025-12-31T00:00:00+00:00", "2026-01-01T00:00:00+00:00"),
        ("2026-01-02T00:00:00+00:00", "2026-01-02T00:00:00+00:00"),
    ],
)
def test_seen_through_never_goes_back(seen, newest):
    assert ledger().advanced({}, attempt="b", seen_through=seen).seen_through == newest


def test_the_end_of_an_unknown_partition_is_unknown():
    assert ledger().end(SOURCE, 0) == 10
    assert ledger().end(SOURCE, 1) is None
    assert ledger().end("other@id", 0) is None


def test_present_is_from_floor_to_end_without_the_gaps():
    assert list(present(ledger())) == [(SOURCE, 0, (2, 4)), (SOURCE, 0, (6, 10))]


def test_a_table_that_read_nothing_has_nothing_present():
    assert list(present(ledger(sources={SOURCE: {0: Progress(floor=5, end=5)}}))) == []


def test_partitions_without_a_record_begin_with_the_first_commit():
    planned = {SOURCE: {0: (10, 20), 1: (3, 3)}, "other@id2": {0: (7, 9)}}
    after = ledger().advanced({SOURCE: {0: (10, 15)}}, attempt="b", seen_through=None, planned=planned)

    assert after.sources[SOURCE][0].unread == (15, 20)
    assert after.sources[SOURCE][1] == Progress(floor=3, end=3, epochs=((3, 1),))
    assert after.sources["other@id2"][0] == Progress(floor=7, end=7, epochs=((7, 1),), seen=9)


def test_a_decision_takes_a_step_and_adds_no_rows():
    sources = {SOURCE: {0: Progress(floor=2, end=12, gaps=((4, 6), (10, 12)))}}
    after = ledger().amended(sources, attempt="b", decisions={"accept_gap": {"p": 1}})

    assert (after.seq, after.added, after.sources) == (5, {}, sources)
    assert Ledger.from_json(after.to_json(), table="orders") == after
    assert after.gaps() == {SOURCE: {0: ((4, 6), (10, 12))}}
    assert after.advanced({}, attempt="c", seen_through=None).decisions == {}


def test_incarnations_of_a_topic_stand_in_the_order_of_their_epochs():
    old, new = Progress(floor=0, end=9), Progress(floor=0, end=2, epochs=((0, 1),))
    both = ledger(sources={"t@zzz": {0: old}, "t@aaa": {0: new}, "u@bbb": {0: old}})

    assert incarnations(both, "t") == ["t@zzz", "t@aaa"]
    assert first_incarnations(both) == {"t@zzz", "u@bbb"}
    assert incarnation_of("a@b@id1") == "id1"
    assert by_topic({"t@zzz": {0: 1}, "t@aaa": {0: 2}}) == {"t@zzz": {"0": 1}, "t@aaa": {"0": 2}}


def test_a_topic_keeps_its_name_whatever_it_holds():
    assert topic_of("a@b@id1") == "a@b"
    assert by_topic({SOURCE: {0: (8, 10)}}) == {"shop.public.orders": {"0": (8, 10)}}
