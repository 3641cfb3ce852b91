"""Random histories of a database through the real chain: a short seeded part of `make fuzz-history`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from history.driver import WarmDriver  # type: ignore[import-not-found]
from history.plan import Choice, steps  # type: ignore[import-not-found]
from history.session import run_history  # type: ignore[import-not-found]
from history.world import World  # type: ignore[import-not-found]

SEED = 1
SECONDS = 120.0
CHOICE = Choice.of(without=("restart_postgres", "kill_submitted"))
"""PostgreSQL and the machine's cores are Airflow's too here."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("histories")


@pytest.fixture(scope="module")
def driver(stack, folder) -> Iterator[WarmDriver]:
    warm = WarmDriver(stack, folder)
    yield warm
    warm.close()


def _changed_behind_the_chain(world: World) -> None:
    with world.connect() as connection:
        connection.execute("DELETE FROM history.named WHERE name = ''")
        connection.execute("INSERT INTO history.named VALUES ('unknown to silver')")
        connection.execute("UPDATE history.tokened SET value = 12345")


def test_a_random_history_leaves_silver_as_postgres_is(stack, driver, folder):
    verdict = run_history(
        stack, driver, folder, steps(SEED, CHOICE), tables=CHOICE.tables, seed=SEED, seconds=SECONDS
    )

    assert verdict.finding is None, str(verdict)


@pytest.mark.long
def test_a_row_lost_a_row_too_many_and_a_wrong_value_are_found(stack, driver, folder):
    verdict = run_history(
        stack,
        driver,
        folder,
        (),
        tables=CHOICE.tables,
        seed=0,
        seconds=SECONDS,
        between=_changed_behind_the_chain,
    )

    told = "\n".join(verdict.finding.details if verdict.finding else ())
    assert "named key ('unknown to silver',): PostgreSQL has one row, silver has 0 rows" in told
    assert "named key ('',): PostgreSQL has no row, silver has 1 rows" in told
    assert "column value: PostgreSQL has 12345, silver has" in told
    assert "events of tokened" in told
    assert "bronze read to" in told
    kept = next(folder.glob("*-keepsakes"))
    assert {each.name for each in kept.iterdir()} == {"logs", "wal", "committed-offsets.jsonl"}
    assert '"lsn"' in (kept / "committed-offsets.jsonl").read_text()
