"""What a real PostgreSQL says of its clock, its log and the reader of its slot (decision 0033)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.slot_look import look_at_slots
from cdc_lakehouse.database.slots import SlotLook
from cdc_lakehouse.errors import SourceUnavailableError
from cdc_lakehouse.lake.confirmations import Confirmations


@pytest.fixture
def items(shelf):
    shelf.sql('DROP TABLE IF EXISTS "odd name"', "CREATE TABLE items (id int PRIMARY KEY)")
    shelf.sql('CREATE TABLE "odd name" (id int PRIMARY KEY)')
    return shelf


def looked(items, *relations: str) -> SlotLook:
    return look_at_slots(items.verification().database, relations=relations)


def test_what_was_committed_before_a_look_stands_below_its_position(items):
    items.sql("INSERT INTO items VALUES (1)")
    (committed,) = items.connection.execute("SELECT clock_timestamp()").fetchone()
    first = looked(items)
    items.sql("INSERT INTO items VALUES (2)")
    second = looked(items)

    assert committed.astimezone(UTC) < first.at < second.at < datetime.now(UTC)
    assert first.position < second.position


def test_it_names_the_tables_that_the_source_has_as_topics_name_them(items):
    assert looked(items, "public.items", "public.odd_name", "public.other").relations == {
        "public.items",
        "public.odd_name",
    }


def test_a_reader_is_believed_once_it_confirmed_something_of_after_it_was_seen(items):
    known, confirmed = Confirmations(), []
    for step in (lambda: None, items.deliver, items.connector.stop, items.connector.start, items.deliver):
        step()
        look = looked(items)
        known = known.having_seen(look, address="db")
        confirmed.append(known.confirmed_in(look))

    first, second, stopped, started, third = confirmed
    assert (first, stopped, started) == (None, None, None)
    assert second is not None
    assert third is not None
    assert second < third


def test_a_source_that_is_away_is_told_soon(items):
    nowhere = Connection(Role.SOURCE, host="127.0.0.1", port=1, login="nobody", extra={"database": "shop"})

    with pytest.raises(SourceUnavailableError):
        look_at_slots(Database.of(nowhere), relations=())
