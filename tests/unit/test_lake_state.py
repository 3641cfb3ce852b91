"""Where a table stands, while somebody else commits to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from delta_logs import commit_of, foreign, ledger_of, write_log  # type: ignore[import-not-found]
from deltalake import DeltaTable

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake import state as lake_state
from cdc_lakehouse.lake.merged_rows import merged_rows
from cdc_lakehouse.lake.state import read_state, state_at

FIRST = ledger_of("orders", topic="shop.orders", end=5)
SECOND = FIRST.advanced({"shop.orders@id1": {0: (5, 9)}}, attempt="later", seen_through=None)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Version 1 states the first ledger, version 2 the second."""
    uri = (tmp_path / "orders").as_uri()
    write_log(uri, commit_of(FIRST), commit_of(SECOND))
    return uri


def overtaken(monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """So many looks load the version before a commit, and list the log behind it."""
    versions: list[int | None] = [1] * times

    def load(uri: str, **options: Any) -> DeltaTable:
        return DeltaTable(uri, version=versions.pop() if versions else None, **options)

    monkeypatch.setattr(lake_state, "DeltaTable", load)


def test_a_commit_that_comes_while_the_log_is_read_gives_no_version_another_ledger(uri, monkeypatch):
    overtaken(monkeypatch, times=2)
    state = read_state(uri, table="orders")

    assert state is not None
    assert (state.version, state.stated, state.ledger) == (2, 2, SECOND)


def test_a_log_that_never_rests_is_worth_another_try(uri, monkeypatch):
    overtaken(monkeypatch, times=1000)

    with pytest.raises(StorageUnavailableError, match="changed whenever it was read"):
        read_state(uri, table="orders")


def test_an_older_version_has_its_own_ledger(uri):
    state = state_at(uri, 1, table="orders")

    assert state is not None
    assert (state.version, state.stated, state.ledger) == (1, 1, FIRST)
    assert "offset" in state.schema.names
    assert state_at(uri, 0, table="orders") is None
    assert state_at(uri, 3, table="orders") is None


def test_a_merge_counts_what_its_own_commit_did_whatever_came_on_top(tmp_path):
    uri = (tmp_path / "silver").as_uri()
    merge, optimize = commit_of(FIRST), foreign("OPTIMIZE")
    merge[0]["commitInfo"]["operationMetrics"] = {"numTargetRowsDeleted": "3"}
    optimize[0]["commitInfo"]["operationMetrics"] = {"numTargetRowsDeleted": "8"}
    write_log(uri, merge, optimize)

    assert merged_rows(uri, 1)["num_deleted_rows"] == 3
