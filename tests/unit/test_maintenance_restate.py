"""When the ledger of a table that stands still is stated again (`guarantees` §2.8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from delta_logs import commit_of, foreign, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.maintenance.restate import DEEP, OLD, is_due

STATED = datetime.fromtimestamp(0.002, UTC)
"""As the logs of these tests say."""


@pytest.mark.parametrize(
    ("age", "above", "due"),
    [
        (OLD, 0, True),
        (OLD - timedelta(seconds=1), 0, False),
        (timedelta(0), DEEP, True),
        (timedelta(0), DEEP - 1, False),
    ],
)
def test_a_ledger_is_stated_again_when_it_is_old_or_deep(tmp_path: Path, age, above, due):
    uri = (tmp_path / "orders").as_uri()
    ledger = ledger_of("orders", topic="shop.orders", end=5)
    write_log(uri, commit_of(ledger), *[foreign("OPTIMIZE") for _ in range(above)])

    state = read_state(uri, table="orders")

    assert state is not None
    assert state.stated_at == STATED
    assert is_due(state, now=STATED + age) is due


def test_a_table_without_a_step_has_no_ledger_to_state(tmp_path: Path):
    uri = (tmp_path / "orders").as_uri()
    write_log(uri)

    state = read_state(uri, table="orders")

    assert state is not None
    assert not is_due(state, now=datetime.now(UTC))
