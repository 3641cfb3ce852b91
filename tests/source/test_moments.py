"""What a real PostgreSQL says of its clock, its log and its tables (decision 0033)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.moments import moment_of
from cdc_lakehouse.errors import SourceUnavailableError


@pytest.fixture
def items(shelf):
    shelf.sql('DROP TABLE IF EXISTS "odd name"', "CREATE TABLE items (id int PRIMARY KEY)")
    shelf.sql('CREATE TABLE "odd name" (id int PRIMARY KEY)')
    return shelf


def test_what_was_committed_before_a_moment_stands_below_its_position(items):
    database = items.verification().database
    items.sql("INSERT INTO items VALUES (1)")
    (committed,) = items.connection.execute("SELECT clock_timestamp()").fetchone()
    first, _ = moment_of(database, relations=())
    items.sql("INSERT INTO items VALUES (2)")
    second, _ = moment_of(database, relations=())

    assert committed.astimezone(UTC) < first.at < second.at < datetime.now(UTC)
    assert first.position < second.position


def test_the_tables_of_the_source_are_named_as_topics_name_them(items):
    database = items.verification().database
    _, found = moment_of(database, relations=("public.items", "public.odd_name", "public.other"))

    assert found == {"public.items", "public.odd_name"}


def test_a_source_that_is_away_is_told_so():
    nowhere = Connection(Role.SOURCE, host="127.0.0.1", port=1, login="nobody", extra={"database": "shop"})

    with pytest.raises(SourceUnavailableError):
        moment_of(Database.of(nowhere), relations=())
