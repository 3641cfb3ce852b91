"""Records decoded again: in place, once, and silver as if they had been sound from the beginning."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from chain import KAFKA_TIME, Chain, table_of  # type: ignore[import-not-found]
from orders import NEW, ORDERS, SOURCE, know, order  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.case_file import Table as CaseTable
from cases.encoding import KafkaRecord, Writer, writers  # type: ignore[import-not-found]
from cdc_lakehouse.bronze import replay_job, table_decoder
from cdc_lakehouse.bronze.trial import count_decodable
from cdc_lakehouse.config.models import OnQuarantine
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import SupersededError, UnknownKeyHeldError, UnknownSchemaError
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.registry.client import SchemaRegistry

HOLDS = ORDERS.model_copy(update={"on_quarantine": OnQuarantine.HOLD})
LATER = [
    order(2, 1, op="u", note="newer than the unreadable"),
    order(3, 3, note="unreadable", priority=1, writer=NEW),  # the only event of its key
    order(4, 1, op="u", note="unreadable", priority=2, writer=NEW),  # older than the next of its key
    order(5, 1, op="u", note="newest"),
    order(6, 2, op="u", note="unreadable", priority=3, writer=NEW),  # its key is deleted then
    order(7, 2, op="d"),
    order(8, 4, note="four"),
    order(9, 4, op="u", note="unreadable", priority=4, writer=NEW),  # newest of its key
]
WHOLE = {1: ("newest", None), 3: ("unreadable", 1), 4: ("unreadable", 4)}


COUNTS = table_of("counts")
_CASE = Case.model_construct(
    name="counts",
    table=CaseTable(
        key=("id",),
        columns={"id": "long", "quantity": "int"},
        columns_from_batch={2: {"id": "long", "quantity": "long"}},
    ),
    events=(CaseEvent(at="0@0"), CaseEvent(at="0@1", batch=2)),
)
_WRITERS = writers(_CASE, first_id=200)
NARROW, WIDE = _WRITERS[1], _WRITERS[2]


def count(offset: int, quantity: int, *, writer: Writer) -> KafkaRecord:
    """One row per offset."""
    lsn = 1000 + 10 * offset
    event = CaseEvent(
        at=f"0@{offset}",
        op="c",
        key={"id": offset},
        after={"id": offset, "quantity": quantity},
        position=SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1),
    )
    return writer.record(event)


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("replay").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    with pytest.raises(UnknownSchemaError):
        chain.ingest(ORDERS, LATER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_decoder, "PERSISTS", timedelta())
        chain.ingest(ORDERS, LATER)
    return chain


@pytest.fixture
def holding(template: Chain, tmp_path: Path) -> Chain:
    """Bronze holds ten records; nobody knows the schema of four of them."""
    return template.copied_to(tmp_path)


@pytest.fixture
def repaired(holding: Chain) -> Chain:
    holding.registry.hidden = NEW.schemas
    return holding


def state(chain: Chain) -> TableState:
    found = read_state(chain.lake.bronze("orders"), table="orders")
    assert found is not None
    return found


def silver(chain: Chain) -> dict[int, tuple[str, int | None]]:
    return {row["id"]: (row["note"], row.get("priority")) for row in chain.silver(ORDERS)}


def test_a_schema_that_stays_unknown_makes_its_records_undecodable(holding):
    rows = {row["offset"]: row for row in holding.bronze(ORDERS)}

    assert [offset for offset, row in rows.items() if row["decode_error"]] == [3, 4, 6, 9]
    assert rows[3]["decode_error"] == {
        "code": "unknown_schema",
        "detail": f"value: schema {NEW.value_id} is nowhere to be found",
    }
    assert (rows[3]["key"], rows[3]["value_schema_id"]) == ({"id": 3}, NEW.value_id)
    assert bytes(rows[3]["raw_value"]) == LATER[1].value


def test_what_is_still_unknown_stays_as_it_is(holding):
    before = state(holding)

    result = holding.replay(ORDERS)

    assert (result.status, result.counts, result.open_cases) == (
        TableStatus.IDLE,
        {"waiting": 4, "closed": 0},
        4,
    )
    assert state(holding) == before


def test_rows_are_decoded_again_where_they_stand(repaired):
    good = [row for row in repaired.bronze(ORDERS) if not row["decode_error"]]

    result = repaired.replay(ORDERS)

    rows = repaired.bronze(ORDERS)
    assert (result.status, result.counts, result.open_cases) == (
        TableStatus.ADVANCED,
        {"waiting": 4, "closed": 4},
        0,
    )
    assert [row["offset"] for row in rows] == list(range(10))
    assert {row["offset"]: row["after"]["priority"] for row in rows if row["after"]} == {
        **dict.fromkeys([0, 1, 2, 5, 8]),
        3: 1,
        4: 2,
        6: 3,
        9: 4,
    }
    assert all(row["decode_error"] is None and row["raw_value"] is None for row in rows)
    assert {row["topic_id"] for row in rows} == {SOURCE.rpartition("@")[2]}
    kept = [row for row in rows if row["offset"] in {each["offset"] for each in good}]
    assert [_without_priority(row) for row in kept] == [_without_priority(row) for row in good]


def _without_priority(row: dict[str, Any]) -> dict[str, Any]:
    sides = {side: row[side] and {**row[side], "priority": None} for side in ("before", "after")}
    return {**row, **sides}


def test_the_ledger_says_what_was_decoded_again_and_adds_nothing(repaired):
    before = state(repaired).ledger

    repaired.replay(ORDERS)

    after = state(repaired).ledger
    assert before is not None
    assert after is not None
    assert (after.seq, after.added, after.sources) == (before.seq + 1, {}, before.sources)
    assert [(redo.seq, redo.rows, redo.within) for redo in after.redo] == [
        (after.seq, 4, {SOURCE: {0: (3, 10)}})
    ]


def test_a_second_replay_finds_nothing(repaired):
    repaired.replay(ORDERS)
    before = state(repaired)

    assert repaired.replay(ORDERS).status is TableStatus.IDLE
    assert state(repaired) == before


def test_an_ingest_goes_on_behind_a_replay(repaired):
    repaired.replay(ORDERS)

    repaired.ingest(ORDERS, [order(10, 5, note="five", priority=5, writer=NEW)])

    assert len(repaired.bronze(ORDERS)) == 11
    repaired.merge(ORDERS)
    assert silver(repaired) == {**WHOLE, 5: ("five", 5)}


def test_late_events_neither_move_a_row_back_nor_bring_one_back(repaired):
    repaired.merge(ORDERS)
    assert silver(repaired) == {1: ("newest", None), 4: ("four", None)}
    repaired.replay(ORDERS)

    result = repaired.merge(ORDERS)

    assert (result.status, result.counts["decoded_again"]) == (TableStatus.ADVANCED, 4)
    assert silver(repaired) == WHOLE
    assert repaired.merge(ORDERS).status is TableStatus.IDLE


def test_silver_made_anew_is_the_same(repaired):
    repaired.merge(ORDERS)
    repaired.replay(ORDERS)
    repaired.merge(ORDERS)
    repaired.forget_silver(ORDERS)

    repaired.merge(ORDERS)

    assert silver(repaired) == WHOLE


def test_a_replay_that_was_overtaken_changes_nothing(repaired, monkeypatch):
    stale = state(repaired)
    repaired.ingest(ORDERS, [order(10, 5, note="five")])
    before = repaired.bronze(ORDERS)
    monkeypatch.setattr(replay_job, "read_state", lambda uri, *, table: stale)

    with pytest.raises(SupersededError):
        repaired.replay(ORDERS)

    assert repaired.bronze(ORDERS) == before


def test_a_column_that_must_widen_for_a_replayed_row_widens(chain, monkeypatch):
    monkeypatch.setattr(table_decoder, "PERSISTS", timedelta())
    (key_id, key), (value_id, value) = NARROW.schemas.items()
    chain.registry.register(COUNTS.topics[0], keys={key_id: key}, values={value_id: value})
    chain.ingest(COUNTS, [count(0, 7, writer=NARROW)])
    chain.ingest(COUNTS, [count(1, 2**40, writer=WIDE)])
    chain.merge(COUNTS)
    chain.registry.hidden = WIDE.schemas

    chain.replay(COUNTS)
    chain.merge(COUNTS)

    assert [row["after"]["quantity"] for row in chain.bronze(COUNTS)] == [7, 2**40]
    assert {row["id"]: row["quantity"] for row in chain.silver(COUNTS)} == {0: 7, 1: 2**40}


def test_keys_that_wait_are_held_and_the_others_merged(holding):
    result = holding.merge(HOLDS)

    assert silver(holding) == {1: ("newer than the unreadable", None), 2: ("two", None), 4: ("four", None)}
    assert (result.counts["parked"], result.open_cases) == (2, 4)


def test_a_held_key_goes_on_when_its_case_is_closed(repaired):
    repaired.merge(HOLDS)
    repaired.ingest(HOLDS, [order(10, 1, op="u", note="while held")])
    assert repaired.merge(HOLDS).counts["parked"] == 1
    repaired.replay(HOLDS)

    repaired.merge(HOLDS)

    whole = {**WHOLE, 1: ("while held", 2)}  # the newest writer does not send the column, the row keeps it
    assert silver(repaired) == whole
    assert repaired.merge(HOLDS).status is TableStatus.IDLE
    repaired.forget_silver(HOLDS)
    repaired.merge(HOLDS)
    assert silver(repaired) == whole


def test_a_table_that_holds_no_more_applies_what_waited(holding):
    holding.merge(HOLDS)
    assert holding.merge(HOLDS).status is TableStatus.IDLE

    assert holding.merge(ORDERS).status is TableStatus.ADVANCED

    assert silver(holding) == {1: ("newest", None), 4: ("four", None)}
    assert holding.merge(ORDERS).status is TableStatus.IDLE


def test_a_record_without_a_key_that_can_be_read_holds_the_table(holding):
    holding.ingest(ORDERS, [replace(order(10, 9), key=b"junk")])

    with pytest.raises(UnknownKeyHeldError) as caught:
        holding.merge(HOLDS)

    assert (caught.value.count, caught.value.first) == (1, "cases.orders/0@10")
    assert read_state(holding.lake.silver("orders"), table="orders") is None


@pytest.mark.parametrize(("is_known", "count"), [(False, 0), (True, 4)], ids=["unknown", "known by now"])
def test_a_look_without_spark_finds_as_many_decodable_records_as_a_replay_closes(holding, is_known, count):
    if is_known:
        know(holding, NEW)
    interval = Interval(KAFKA_TIME, KAFKA_TIME + timedelta(seconds=1))
    registry = cast(SchemaRegistry, holding.registry)

    found = count_decodable(holding.application(ORDERS), ORDERS, interval, registry=registry)

    assert (found, holding.replay(ORDERS).rows) == (count, count)
