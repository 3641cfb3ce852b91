"""A merge that would remove many rows stops before it writes, and goes on by a decision about just that."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from chain import BY, Chain, table_of  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import OLD, know, order, truncate  # type: ignore[import-not-found]

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import DecisionOutdatedError, DeletesLimitError, SupersededError
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.silver import applying

LIMIT = {"rows": 2, "share": 0.5}
ORDERS = table_of("orders", history=True, deletes_limit=LIMIT)
SOFT = table_of("orders", deletes="soft", deletes_limit=LIMIT)
IDS = range(1, 7)
MANY = [order(6 + number, 1 + number, op="d") for number in range(4)]


def snapshot(*ids: int, tx: int = 900, at: int = 6) -> list[KafkaRecord]:
    """A blocking snapshot that is repeated and reads these rows only."""
    return [
        OLD.record(
            CaseEvent(
                at=f"0@{at + number}",
                op="r",
                key={"id": row},
                after={"id": row, "note": "again"},
                position=SourcePosition(
                    snapshot="last" if row == ids[-1] else "true",
                    sequence=(None, 10 * tx),
                    lsn=10 * tx,
                    tx=tx,
                ),
            )
        )
        for number, row in enumerate(ids)
    ]


def merged(engine: Any, folder: Path, table: Table) -> Chain:
    chain = Chain(engine, root=folder.as_uri())
    know(chain)
    chain.ingest(table, [order(at, number) for at, number in enumerate(IDS)])
    chain.merge(table)
    return chain


@pytest.fixture(scope="module")
def templates(engine, tmp_path_factory) -> dict[Table, Chain]:
    return {each: merged(engine, tmp_path_factory.mktemp("limit"), each) for each in (ORDERS, SOFT)}


@pytest.fixture
def six(templates, tmp_path) -> Chain:
    """Six rows in silver, and in its history."""
    return templates[ORDERS].copied_to(tmp_path)


def versions(chain: Chain) -> list[int]:
    """Of silver and of what stands beside it."""
    lake = chain.lake
    found = (lake.silver("orders"), lake.history("orders"), lake.tombstones("orders"))
    return [DeltaTable(uri).version() for uri in found]


def stopped(chain: Chain, table: Table = ORDERS, **asked: Any) -> DeletesLimitError:
    with pytest.raises(DeletesLimitError) as caught:
        chain.merge(table, **asked)
    return caught.value


def alive(chain: Chain) -> set[int]:
    return {row["id"] for row in chain.silver(ORDERS) if not row.get("_cdc_deleted")}


def open_rows(chain: Chain) -> list[int]:
    """Keys of the history whose newest version has no end."""
    return sorted(row["id"] for row in chain.history(ORDERS) if row["_cdc_to"] is None)


def test_a_truncate_of_most_rows_stops_before_anything_is_written(six):
    six.ingest(ORDERS, [truncate(6)])
    before = versions(six)
    error = stopped(six)

    assert (error.rows, error.of, error.where, error.cause) == (6, 6, "silver", "1 TRUNCATE")
    assert error.decision == "orders=step1@v2:6rows"
    assert versions(six) == before


def test_a_snapshot_of_some_rows_stops_and_a_whole_one_behind_it_lets_the_merge_go_on(six):
    six.ingest(ORDERS, snapshot(1, 2))
    error = stopped(six)
    six.ingest(ORDERS, snapshot(*IDS, tx=950, at=8))
    six.merge(ORDERS)

    assert (error.rows, error.of, error.cause) == (4, 6, "a snapshot that lacks them")
    assert alive(six) == set(IDS)


def test_what_a_person_accepted_is_removed_and_nothing_that_came_since(six):
    six.ingest(ORDERS, MANY)
    error = stopped(six)
    value = error.decision
    six.ingest(ORDERS, [order(10, 5, op="d"), order(11, 9)])
    result = six.merge(ORDERS, accept_deletes=value)
    after = alive(six)
    again = six.merge(ORDERS, accept_deletes=value)

    assert (result.counts["rows_deleted"], after) == (4, {5, 6})
    assert result.decisions["accept_deletes"] == {"step": 1, "bronze": 2, "rows": 4}
    assert "decided_by" in result.decisions
    assert (again.decisions, alive(six)) == ({}, {6, 9})
    assert open_rows(six) == [6, 9]
    assert six.merge(ORDERS, accept_deletes=value).status is TableStatus.IDLE
    assert set(error.examples.split(", ")) <= {key_hash(number) for number in (1, 2, 3, 4)}


def key_hash(number: int) -> str:
    return hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("value", ["orders=step1@v2:3rows", "orders=step1@v1:4rows"])
def test_a_decision_about_something_else_is_refused_and_names_what_stands_there(six, value):
    six.ingest(ORDERS, MANY)
    before = versions(six)
    with pytest.raises(DecisionOutdatedError) as caught:
        six.merge(ORDERS, accept_deletes=value)

    assert caught.value.named == f"`{value}`"
    assert "`orders=step1@v2:4rows`" in caught.value.standing
    assert versions(six) == before


def test_a_decision_that_a_raised_limit_made_needless_is_not_recorded(six):
    raised = table_of("orders", history=True, deletes_limit={"share": 1})
    six.ingest(ORDERS, MANY)
    value = stopped(six).decision
    result = six.merge(raised, accept_deletes=value)

    assert (alive(six), result.decisions) == ({5, 6}, {})


def test_a_decision_is_refused_where_nothing_waits(six):
    with pytest.raises(DecisionOutdatedError, match="the decision that is open is nothing"):
        six.merge(ORDERS, accept_deletes="orders=step1@v2:4rows")


def test_what_the_limit_allows_goes_and_what_comes_back_does_not_count(six):
    again = [order(9 + number, number, note="new") for number in (1, 2, 3)]
    six.ingest(ORDERS, [truncate(6), *again])
    six.merge(ORDERS)

    assert alive(six) == {1, 2, 3}


def test_marking_rows_as_deleted_counts_too(templates, tmp_path):
    chain = templates[SOFT].copied_to(tmp_path)
    chain.ingest(SOFT, MANY)
    error = stopped(chain, SOFT)
    chain.merge(SOFT, accept_deletes=error.decision)
    chain.ingest(SOFT, [truncate(10)])
    chain.merge(SOFT)

    assert (error.rows, error.of, alive(chain)) == (4, 6, set())


def test_a_history_that_is_cut_anew_ends_no_more_rows_than_that(six):
    six.forget(six.lake.silver("orders"))
    six.ingest(ORDERS, [truncate(6)])
    error = stopped(six)
    still_open = open_rows(six)
    result = six.merge(ORDERS, accept_deletes=error.decision)

    assert result.decisions["accept_deletes"]["rows"] == 6
    assert (error.where, error.rows, error.of) == ("the history", 6, 6)
    assert still_open == list(IDS)
    assert open_rows(six) == []


def test_a_merge_that_ends_a_killed_one_tells_by_whose_decision_the_history_lost_rows(
    six, monkeypatch: pytest.MonkeyPatch
):
    six.forget(six.lake.silver("orders"))
    six.ingest(ORDERS, [truncate(6)])
    value = stopped(six).decision

    def die(*_arguments: object, **_facts: object) -> None:
        raise SupersededError(table="orders", seq=0, attempt="killed")

    with monkeypatch.context() as patch:
        patch.setattr(applying, "_applied", die)
        for decision in (value, None):
            with pytest.raises(SupersededError):
                six.merge(ORDERS, accept_deletes=decision)
    between = open_rows(six)
    result = six.merge(ORDERS)
    state = read_state(six.lake.silver("orders"), table="orders")

    assert between == []
    assert result.decisions == {
        "accept_deletes": {"step": 0, "bronze": 2, "rows": 6},
        "decided_by": BY,
    }
    assert state is not None
    assert state.ledger is not None
    assert state.ledger.decisions == result.decisions
    six.ingest(ORDERS, [order(7, 1)])
    assert six.merge(ORDERS).decisions == {}
