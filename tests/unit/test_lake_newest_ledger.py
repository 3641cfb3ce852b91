"""The short way to a ledger: the same as the long one, or no answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from delta_logs import commit_of, foreign, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.newest_ledger import newest_ledger
from cdc_lakehouse.lake.state import read_state

FIRST = ledger_of("orders", topic="shop.orders", end=5)


def steps(count: int) -> list[Ledger]:
    found = [FIRST]
    for number in range(1, count):
        ranges = {"shop.orders@id1": {0: (5 * number, 5 * number + 5)}}
        found.append(found[-1].advanced(ranges, attempt=FIRST.attempt, seen_through=None))
    return found


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return (tmp_path / "orders").as_uri()


@pytest.mark.parametrize("count", [1, 11, 12, 13, 40])
def test_it_is_the_ledger_that_the_whole_state_has(uri, count):
    write_log(uri, *(commit_of(ledger) for ledger in steps(count)))

    newest, state = newest_ledger(uri, table="orders"), read_state(uri, table="orders")

    assert newest is not None
    assert state is not None
    assert (newest.version, newest.ledger) == (state.version, state.ledger)


def test_a_log_that_begins_at_a_checkpoint_is_read_from_there(uri):
    write_log(uri, *(commit_of(ledger) for ledger in steps(30)))
    log = Path(uri.removeprefix("file://"), "_delta_log")
    (log / "_last_checkpoint").write_text('{"version": 25, "size": 3}')
    for version in range(25):
        (log / f"{version:020d}.json").unlink()

    newest = newest_ledger(uri, table="orders")

    assert newest is not None
    assert newest.version == 30


def test_maintenance_on_top_changes_nothing(uri):
    write_log(uri, commit_of(FIRST), foreign("OPTIMIZE"), foreign("VACUUM START"), foreign("VACUUM END"))

    newest = newest_ledger(uri, table="orders")

    assert newest is not None
    assert (newest.version, newest.ledger) == (4, FIRST)


@pytest.mark.parametrize("operation", ["WRITE", "DELETE", "RESTORE", "MERGE", "ADD COLUMNS", "unheard of"])
def test_anything_else_on_top_is_left_to_the_long_way(uri, operation):
    write_log(uri, commit_of(FIRST), foreign(operation))

    assert newest_ledger(uri, table="orders") is None


@pytest.mark.parametrize(
    ("between", "is_told"), [(["OPTIMIZE"], True), (["ADD COLUMNS"], True), (["OPTIMIZE", "DELETE"], False)]
)
def test_what_others_changed_between_a_step_and_what_it_follows_is_left_to_the_long_way(
    between, is_told, uri
):
    second = replace(steps(2)[1], applied=Applied(follows=1))
    write_log(uri, commit_of(FIRST), *map(foreign, between), commit_of(second))

    assert (newest_ledger(uri, table="orders") is not None) is is_told


def test_a_table_that_does_not_exist_or_has_no_step_has_no_answer(uri):
    assert newest_ledger(uri, table="orders") is None

    write_log(uri)

    assert newest_ledger(uri, table="orders") is None


def test_a_document_that_its_own_step_does_not_confirm_is_left_to_the_long_way(uri):
    commit = commit_of(FIRST)
    write_log(uri, [commit[0], {"txn": {"appId": "cdc_lakehouse", "version": 7, "lastUpdated": 1}}])

    assert newest_ledger(uri, table="orders") is None


def test_the_ledger_of_another_table_is_left_to_the_long_way(uri):
    write_log(uri, commit_of(replace(FIRST, table="customers")))

    assert newest_ledger(uri, table="orders") is None


def test_a_commit_that_cannot_be_read_is_left_to_the_long_way(uri):
    write_log(uri, commit_of(FIRST))
    Path(uri.removeprefix("file://"), "_delta_log", f"{2:020d}.json").write_text("half a li")

    assert newest_ledger(uri, table="orders") is None
