"""What the commits of a log say about progress (`architecture` §5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_lakehouse.errors import LedgerVersionError
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.commits import ForeignCommit, restored_by, tells_enough, told_by
from cdc_lakehouse.lake.ledger import Kind, Ledger


def ledger(seq: int) -> Ledger:
    return Ledger(kind=Kind.BRONZE, pipeline="shop", table="orders", cluster_id="c1", seq=seq)


def log(*commits: Ledger | str | tuple[str, int]) -> list[dict[str, Any]]:
    """Oldest first, as they were made: a ledger of ours, an operation, or a RESTORE and where to."""
    told: list[dict[str, Any]] = []
    for version, commit in enumerate(commits):
        if isinstance(commit, Ledger):
            told.append({"version": version, "operation": "WRITE", "userMetadata": commit.to_json()})
        elif isinstance(commit, tuple):
            told.append(
                {"version": version, "operation": commit[0], "operationParameters": {"version": commit[1]}}
            )
        else:
            told.append({"version": version, "operation": commit, "userMetadata": "somebody's"})
    return told[::-1]


def test_the_newest_ledger_counts_whatever_kept_the_data_behind_it():
    told = told_by(log("CREATE TABLE", ledger(1), ledger(2), "OPTIMIZE", "VACUUM END"), table="orders")

    assert (told.ledger, told.stated, told.foreign) == (ledger(2), 2, ())


def test_a_table_without_a_commit_of_data_has_no_ledger():
    told = told_by(log("CREATE TABLE"), table="orders")

    assert (told.ledger, told.stated, told.foreign) == (None, None, ())


@pytest.mark.parametrize(
    "operation", ["DELETE", "WRITE", "MERGE", "TRUNCATE", "something of a later release"]
)
def test_what_is_not_known_to_keep_the_data_changed_it(operation):
    told = told_by(log(ledger(1), operation, "OPTIMIZE"), table="orders")

    assert told.ledger == ledger(1)
    assert told.foreign == (ForeignCommit(1, operation),)


def test_a_restore_says_whose_data_the_table_has_again():
    history = log("CREATE TABLE", ledger(1), ledger(2), ("RESTORE", 1), "OPTIMIZE")
    restored = restored_by(history, table="orders")

    assert told_by(history, table="orders").foreign == (ForeignCommit(3, "RESTORE", restored=1),)
    assert restored is not None
    assert (restored.ledger, restored.stated) == (ledger(1), 1)


def test_a_restore_of_a_restore_is_followed():
    restored = restored_by(log(ledger(1), ledger(2), ("RESTORE", 0), ("RESTORE", 2)), table="orders")

    assert restored is not None
    assert restored.ledger == ledger(1)


def test_a_restore_to_before_the_first_row_brings_back_an_empty_table():
    restored = restored_by(log("CREATE TABLE", ledger(1), ("RESTORE", 0)), table="orders")

    assert restored is not None
    assert restored.ledger is None


@pytest.mark.parametrize(
    "history",
    [
        log(ledger(1), "DELETE"),
        log(ledger(1), "DELETE", ledger(2), ("RESTORE", 1)),
        log(ledger(1), ledger(2), ("RESTORE", 0), "DELETE"),
        log(ledger(1), ledger(2)),
    ],
    ids=["no restore", "back to an edited version", "edited afterwards", "nothing foreign"],
)
def test_where_only_the_rows_can_tell_the_log_does_not_guess(history):
    assert restored_by(history, table="orders") is None


def test_an_acknowledged_change_is_over():
    told = told_by(log(ledger(1), "DELETE", ledger(2)), table="orders")

    assert (told.ledger, told.foreign) == (ledger(2), ())


def test_a_ledger_of_a_later_release_is_not_passed_over():
    commit = log(ledger(1))[0]

    with pytest.raises(LedgerVersionError):
        told_by(
            [{**commit, "userMetadata": commit["userMetadata"].replace('"v": 1', '"v": 2')}], table="orders"
        )


def following(version: int, *, seq: int) -> Ledger:
    return replace(ledger(seq), applied=Applied(follows=version))


def test_what_others_changed_between_a_step_and_the_version_that_it_follows_is_foreign_for_ever():
    history = log("CREATE TABLE", ledger(1), "DELETE", "OPTIMIZE", following(1, seq=2), "VACUUM END")

    told = told_by(history, table="orders")

    assert (told.stated, told.foreign) == (4, (ForeignCommit(2, "DELETE"),))


def test_what_a_step_follows_is_known_to_it():
    history = log(ledger(1), "DELETE", "ADD COLUMNS", following(1, seq=2))

    assert told_by(history, table="orders").foreign == ()


@pytest.mark.parametrize(("read", "enough"), [(1, False), (2, False), (3, True)])
def test_commits_tell_enough_down_to_the_one_behind_the_version_that_the_step_follows(read, enough):
    history = log(ledger(1), "OPTIMIZE", "OPTIMIZE", following(0, seq=2))[:read]

    assert tells_enough(history, told_by(history, table="orders")) is enough
