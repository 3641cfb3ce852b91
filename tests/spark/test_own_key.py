"""`key` of a table: columns of its rows tell them apart in silver, and what breaks that stops the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from chain import Chain  # type: ignore[import-not-found]
from items import (  # type: ignore[import-not-found]
    COUNTED,
    COUNTED_FURTHER,
    KEYLESS,
    event,
    item,
    items,
    know,
)

from cdc_lakehouse.errors import (
    InvalidShapeError,
    KeyNotToldError,
    KeyNotUniqueError,
    ModeChangedError,
    ShapeChangedError,
    UnknownKeyHeldError,
)

BY_CODE = items(key=["code"])


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    """Silver by code has the items 1 (a) and 2 (c); 3 (x) is deleted."""
    chain = know(Chain(engine, root=tmp_path_factory.mktemp("own_key").as_uri()))
    chain.ingest(
        BY_CODE,
        [
            event(0, "c", None, item(1, "a", "one")),
            event(1, "c", None, item(2, "b", "two")),
            event(2, "c", None, item(3, "x", "three")),
        ],
    )
    chain.merge(BY_CODE)
    chain.ingest(
        BY_CODE,
        [event(3, "u", item(2, "b", "two"), item(2, "c", "two")), event(4, "d", item(3, "x", "three"), None)],
    )
    chain.merge(BY_CODE)
    return chain


@pytest.fixture
def level(template: Chain, tmp_path: Any) -> Chain:
    return template.copied_to(tmp_path)


def told(chain: Chain, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in chain.silver(BY_CODE))


def test_an_update_of_the_key_is_one_event_that_moves_its_row(level):
    level.ingest(BY_CODE, [event(5, "u", item(2, "c", "two"), item(2, "d", "zwei"))])

    counts = level.merge(BY_CODE).counts

    assert told(level, "code", "id", "note") == [("a", 1, "one"), ("d", 2, "zwei")]
    assert (counts["read"], counts["events"]) == (1, 1)
    assert (counts["rows_inserted"], counts["rows_deleted"]) == (1, 1)


def test_a_delete_with_an_invented_value_stops_the_table(level):
    """Not FULL: `code` may not be NULL, so the connector sends an empty text."""
    level.ingest(BY_CODE, [event(5, "d", item(2, "", None), None)])

    with pytest.raises(KeyNotToldError) as caught:
        level.merge(BY_CODE)

    assert (caught.value.table, caught.value.column, caught.value.count) == ("items", "code", 1)
    assert (caught.value.why, caught.value.coordinate) == ("`before` does not show it", "cases.items/0@5")
    assert told(level, "code") == [("a",), ("c",)]


def test_an_update_that_does_not_tell_what_was_before_stops_the_table(level):
    level.ingest(BY_CODE, [event(5, "u", None, item(2, "d", "zwei"))])

    with pytest.raises(KeyNotToldError) as caught:
        level.merge(BY_CODE)

    assert (caught.value.column, caught.value.coordinate) == ("code", "cases.items/0@5")


def test_another_row_with_the_same_key_stops_the_table_and_both_are_named(level):
    level.ingest(BY_CODE, [event(5, "c", None, item(4, "a", "four"))])

    with pytest.raises(KeyNotUniqueError) as caught:
        level.merge(BY_CODE)

    assert (caught.value.table, caught.value.columns) == ("items", "code")
    assert (caught.value.first, caught.value.second) == ("cases.items/0@0", "cases.items/0@5")


def test_a_key_that_is_free_again_may_be_taken(level):
    sent = [
        event(5, "d", item(1, "a", "one"), None),
        event(6, "c", None, item(4, "a", "four")),
        event(7, "c", None, item(5, "x", "five")),
    ]
    level.ingest(BY_CODE, sent)
    level.merge(BY_CODE)

    assert told(level, "code", "id") == [("a", 4), ("c", 2), ("x", 5)]


def test_a_create_that_is_read_before_the_delete_that_made_room_waits_for_it(level):
    level.ingest(BY_CODE, [event(6, "c", None, item(4, "a", "four"), partition=1, offset=0)])
    with pytest.raises(KeyNotUniqueError):
        level.merge(BY_CODE)
    level.ingest(BY_CODE, [event(5, "d", item(1, "a", "one"), None)])

    level.merge(BY_CODE)

    assert told(level, "code", "id") == [("a", 4), ("c", 2)]


def test_a_row_that_comes_late_between_two_lives_of_a_key_is_found(level):
    """Silver has forgotten that row: only bronze knows when it lived."""
    level.ingest(
        BY_CODE, [event(7, "d", item(1, "a", "one"), None), event(8, "c", None, item(4, "a", "four"))]
    )
    level.merge(BY_CODE)
    level.ingest(BY_CODE, [event(6, "c", None, item(5, "a", "five"), partition=1, offset=0)])

    with pytest.raises(KeyNotUniqueError) as caught:
        level.merge(BY_CODE)

    assert (caught.value.first, caught.value.second) == ("cases.items/0@0", "cases.items/1@0")


@pytest.mark.parametrize("key", [None, ["note"], ["code", "id"]])
def test_another_key_than_silver_was_made_by_is_refused(key, level):
    with pytest.raises(ShapeChangedError) as caught:
        level.merge(items(key=key))

    assert (caught.value.table, caught.value.changed) == ("items", "`key`")


def test_silver_that_is_made_anew_by_another_key_forgets_the_deletes_by_the_old_one(level):
    table = items(key=["note"])
    level.forget_silver(table)
    level.merge(table)
    level.ingest(table, [event(5, "d", item(1, "a", "one"), None)])
    level.merge(table)

    dead = level.rows(level.lake.tombstones("items"), "note")
    assert told(level, "note") == [("two",)]
    assert [row["note"] for row in dead] == ["one", "three"]


def test_a_table_of_events_that_gets_a_key_is_made_anew(chain):
    know(chain, KEYLESS)
    chain.ingest(items(), [event(0, "c", None, item(1, "a", "one"), writer=KEYLESS)])
    chain.merge(items())

    with pytest.raises(ModeChangedError):
        chain.merge(BY_CODE)

    chain.forget_silver(BY_CODE)
    chain.merge(BY_CODE)
    assert told(chain, "code", "id", "_cdc_op") == [("a", 1, "c")]


def test_a_key_may_be_renamed_and_the_message_key_left_out(level):
    table = items(key=["number"], columns={"rename": {"code": "number"}, "exclude": ["id"]})
    level.forget_silver(table)

    level.merge(table)

    assert told(level, "number", "note") == [("a", "one"), ("c", "two")]


def test_a_key_that_bronze_does_not_have_is_refused_with_a_hint(level):
    table = items(key=["cod"])
    level.forget_silver(table)

    with pytest.raises(InvalidShapeError) as caught:
        level.merge(table)

    assert (caught.value.setting, caught.value.problem) == (
        "key",
        "bronze has no column cod; did you mean code?",
    )


def test_an_undecodable_record_tells_no_such_key_and_holds_the_table(level):
    table = items(key=["code"], on_quarantine="hold")
    level.ingest(table, [replace(event(5, "u", None, item(1, "a")), value=b"junk")])

    with pytest.raises(UnknownKeyHeldError):
        level.merge(table)


def test_tombstones_follow_a_key_whose_type_grows(chain):
    table = items(key=["code"])
    know(chain, COUNTED)
    chain.ingest(table, [event(0, "c", None, item(1, 7, "one"), writer=COUNTED)])
    chain.merge(table)
    chain.ingest(table, [event(1, "d", item(1, 7, "one"), None, writer=COUNTED)])
    chain.merge(table)
    know(chain, COUNTED_FURTHER)
    far = item(2, 5_000_000_000, "two")
    chain.ingest(table, [event(2, "c", None, far, writer=COUNTED_FURTHER)])
    chain.merge(table)
    chain.ingest(table, [event(3, "d", far, None, writer=COUNTED_FURTHER)])
    chain.merge(table)

    dead = chain.rows(chain.lake.tombstones("items"), "code")
    assert [row["code"] for row in dead] == [7, 5_000_000_000]
