"""Silver with a row per event: each stands there once, whenever and however often it comes (rule 2.3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import NEW, ORDERS, TOPIC, acknowledging, know, order, planned, tombstone  # type: ignore[import-not-found]

from cdc_lakehouse.bronze import table_decoder
from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.replay_job import replay_table
from cdc_lakehouse.config.models import Mode, OnQuarantine
from cdc_lakehouse.contract import Job, TableStatus
from cdc_lakehouse.errors import ModeChangedError, SupersededError
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.verification.subject import NotComparedError, subject_of

APPENDED = ORDERS.model_copy(update={"mode": Mode.APPEND})
HOLDS = APPENDED.model_copy(update={"on_quarantine": OnQuarantine.HOLD})
KAFKA = [
    order(0, 1, note="one"),
    order(1, 1, op="u", note="uno"),
    order(2, 1, op="d"),
    order(3, 2, note="two"),
]


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("append").as_uri())
    know(chain)
    chain.ingest(ORDERS, KAFKA)
    chain.merge(APPENDED)
    return chain


@pytest.fixture
def level(template: Chain, tmp_path: Path) -> Chain:
    """Silver has a row for each of four events."""
    return template.copied_to(tmp_path)


@pytest.fixture
def holed(level: Chain) -> Chain:
    """Bronze lost offset 1 before silver was made anew from it."""
    level.sql("DELETE FROM {t} WHERE offset = 1", level.lake.bronze("orders"))
    level.ingest(ORDERS, [], plan=planned(level, acknowledging(level), held=(0, 4)))
    level.forget_silver(APPENDED)
    level.merge(APPENDED)
    return level


def told(chain: Chain) -> list[tuple[str, int, str | None]]:
    rows = sorted(chain.silver(APPENDED), key=lambda row: row["_cdc_position"]["row"])
    return [(row["_cdc_op"], row["id"], row["note"]) for row in rows]


WHOLE = [("c", 1, "one"), ("u", 1, "uno"), ("d", 1, None), ("c", 2, "two")]


def test_a_second_merge_finds_nothing_to_do(level):
    assert level.merge(APPENDED).status is TableStatus.IDLE
    assert told(level) == WHOLE


def test_a_result_counts_every_record_once(level):
    again = [order(1, 1, op="u", note="uno", at=4), order(5, 3, note="three"), tombstone(6, 3)]
    level.ingest(ORDERS, again)

    result = level.merge(APPENDED)

    assert result.counts == {
        "read": 3, "events": 2, "ignored": 1, "undecodable": 0, "truncates": 0, "parked": 0,
        "refused": 0, "decoded_again": 0, "late_offsets": 0,
        "rows_inserted": 1, "rows_updated": 0, "rows_deleted": 0, "repeated": 1,
    }  # fmt: skip
    assert told(level) == [*WHOLE, ("c", 3, "three")]


def test_a_batch_of_which_all_is_there_advances_the_ledger(level):
    level.ingest(ORDERS, [order(3, 2, note="two", at=4)])

    result = level.merge(APPENDED)

    assert (result.status, result.ranges) == (TableStatus.ADVANCED, {TOPIC: {"0": (4, 5)}})
    assert told(level) == WHOLE


def test_a_batch_without_an_event_advances_the_ledger(level):
    level.ingest(ORDERS, [tombstone(4, 1)])

    assert level.merge(APPENDED).status is TableStatus.ADVANCED
    assert level.merge(APPENDED).status is TableStatus.IDLE


def test_files_of_events_at_other_places_are_not_read(level):
    for path in Path(urlsplit(level.lake.silver("orders")).path).glob("*.parquet"):
        path.write_bytes(bytes(path.stat().st_size))  # as large as before, and no Parquet
    level.ingest(ORDERS, [order(4, 3, note="three")])

    result = level.merge(APPENDED)

    assert result.counts["rows_inserted"] == 1


def test_a_zombie_merge_changes_nothing(level, monkeypatch):
    uri, bronze = level.lake.silver("orders"), level.lake.bronze("orders")
    stale = read_state(uri, table="orders")
    level.ingest(ORDERS, [order(4, 3, note="three")])
    level.merge(APPENDED)
    states = {bronze: read_state(bronze, table="orders"), uri: stale}
    monkeypatch.setattr("cdc_lakehouse.silver.look.newest_ledger", lambda uri, *, table: None)
    monkeypatch.setattr("cdc_lakehouse.silver.look.read_state", lambda uri, *, table: states[uri])

    with pytest.raises(SupersededError):
        level.merge(APPENDED)

    assert told(level) == [*WHOLE, ("c", 3, "three")]


def test_a_row_that_came_late_is_there_once(holed):
    before = told(holed)
    holed.ingest(ORDERS, [], plan=planned(holed, Decided(fill_gaps=True), held=(0, 4)), kafka=KAFKA)

    result = holed.merge(APPENDED)

    assert before == [WHOLE[0], *WHOLE[2:]]
    assert told(holed) == WHOLE
    assert (result.counts["late_offsets"], result.counts["rows_inserted"]) == (1, 1)
    assert holed.merge(APPENDED).status is TableStatus.IDLE


def test_a_record_that_is_decoded_again_becomes_a_row_and_holds_none_until_then(level):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_decoder, "PERSISTS", timedelta())
        unreadable = order(4, 2, op="u", note="dos", priority=1, writer=NEW)
        level.ingest(ORDERS, [unreadable, order(5, 2, op="u", note="zwei")])
    level.merge(HOLDS)
    before = told(level)
    level.registry.hidden = NEW.schemas
    level.replay(ORDERS)

    result = level.merge(HOLDS)

    assert before == [*WHOLE, ("u", 2, "zwei")]
    assert told(level) == [*WHOLE, ("u", 2, "dos"), ("u", 2, "zwei")]
    assert (result.counts["decoded_again"], result.counts["rows_inserted"]) == (1, 1)


def test_a_closed_case_becomes_no_row(level):
    level.ingest(ORDERS, [replace(order(4, 2, op="u"), value=b"junk"), order(5, 2, op="u", note="zwei")])
    level.merge(APPENDED)
    application = level.application(ORDERS, job=Job.QUARANTINE_REPLAY)
    asked = replace(application.request, close_cases=(f"orders={TOPIC}/0@4",))
    registry = cast(SchemaRegistry, level.registry)
    replay_table(replace(application, request=asked), ORDERS, registry=registry)

    level.merge(APPENDED)

    assert told(level) == [*WHOLE, ("u", 2, "zwei")]
    assert level.merge(APPENDED).status is TableStatus.IDLE


def test_a_row_per_event_is_not_compared_with_the_source(level):
    with pytest.raises(NotComparedError, match="its silver has a row per event"):
        subject_of(level.lake, APPENDED)


def test_rows_of_one_mode_are_not_gone_on_with_in_the_other(level):
    level.ingest(ORDERS, [order(4, 3, note="three")])

    with pytest.raises(ModeChangedError) as caught:
        level.merge(ORDERS)

    assert (caught.value.was, caught.value.now) == ("append", "upsert")
    assert told(level) == WHOLE
