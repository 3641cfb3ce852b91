"""Tables say up to when they are complete: idle, without the connector, and while rows are written.

Runs that find nothing are looks without a JVM, as the operator starts them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from backlogs import ROOT  # type: ignore[import-not-found]
from driver import Chain, rows  # type: ignore[import-not-found]

from cdc_lakehouse.contract import ENV_PIPELINES, ENV_RESULT, Job, JobResult, TableResult
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.snapshot import newest_snapshot

TABLES = ("customers", "vouchers")
CUSTOMER = "INSERT INTO customers (id, name, balance, active, created_at) VALUES (%s, 'w', 0, true, now())"
VOUCHER = "INSERT INTO vouchers VALUES (%s, 5, NULL)"


@dataclass(frozen=True)
class Looks:
    chain: Chain
    folder: Path

    def silver(self) -> dict[str, TableResult]:
        """Of an ingest and a merge that find nothing to do."""
        self.look("bronze")
        found = self.look("silver")
        assert found is not None
        return {table.table: table for table in found.tables}

    def ingested(self, table: str) -> TableResult:
        """Of an ingest that finds nothing to do."""
        found = self.look("bronze")
        assert found is not None
        return {each.table: each for each in found.tables}[table]

    def look(self, room: str) -> JobResult | None:
        """None where there is something to do."""
        result = self.folder / f"{room}.json"
        result.unlink(missing_ok=True)
        own = {"PYTHONPATH": str(ROOT / "include"), ENV_PIPELINES: str(self.folder), ENV_RESULT: str(result)}
        environment = {**os.environ, **self.chain.stack.job_environment(), **own}
        command = [sys.executable, "-m", f"cdc_lakehouse.{room}", "--pipeline", "shop"]
        subprocess.run(command, env=environment, check=False)
        return JobResult.from_json(result.read_text()) if result.exists() else None


class Writer:
    """Rows for two tables, each with a time at which everybody could see it."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.customers: dict[int, datetime] = {}
        self.vouchers: dict[str, datetime] = {}

    def _write(self) -> None:
        with self._chain.stack.postgres.connect(user="shop") as connection:
            connection.autocommit = True
            number = 50_000
            while not self._ended.wait(0.1):
                number += 1
                connection.execute(CUSTOMER, (number,))
                self.customers[number] = seen_at(connection)
                connection.execute(VOUCHER, (f"W{number}",))
                self.vouchers[f"W{number}"] = seen_at(connection)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()


def seen_at(connection) -> datetime:
    moment: datetime = connection.execute("SELECT clock_timestamp()").fetchone()[0]
    return moment.astimezone(UTC)


@pytest.fixture(scope="module")
def looks(chain, tmp_path_factory) -> Looks:
    folder = tmp_path_factory.mktemp("looks")
    shutil.copy(ROOT / "include" / "pipelines" / "shop.yaml", folder)
    chain.stack.connector.wait_until_captured()
    if not chain.runs:
        chain.run()
    return Looks(chain, folder)


@pytest.fixture(scope="module")
def idle(chain, looks) -> tuple[dict[str, TableResult], ...]:
    """Three looks at a source where nothing happens but the connector's heartbeat."""
    found = []
    for _ in range(3):
        found.append(looks.silver())
        chain.stack.connector.wait_until_captured()
    return tuple(found)


@pytest.fixture(scope="module")
def stopped(chain, looks, idle) -> tuple[dict[str, TableResult], dict[str, TableResult], datetime]:
    """Two looks after the connector was stopped, and when a row was written before them."""
    chain.stack.stop("connect")
    with chain.stack.postgres.connect(user="shop") as connection:
        connection.autocommit = True
        connection.execute(VOUCHER, ("UNSEEN",))
        at = seen_at(connection)
    return looks.silver(), looks.silver(), at


@pytest.fixture(scope="module")
def busy(chain, looks, stopped) -> Writer:
    chain.stack.start("connect")
    chain.stack.connector.wait_until_captured()
    with Writer(chain) as writer:
        chain.stack.connector.wait_until_captured()
        chain.run()
    return writer


def position(told: TableResult) -> LogPosition:
    assert told.valid_position is not None
    return LogPosition.from_text(told.valid_position)


def time(told: TableResult) -> datetime:
    assert told.valid_through is not None
    return datetime.fromisoformat(told.valid_through)


@pytest.mark.parametrize("table", TABLES)
def test_an_idle_run_moves_the_claim_and_commits_nothing(chain, idle, table):
    version = newest_snapshot(chain.lake.silver(table)).version  # type: ignore[union-attr]

    assert position(idle[1][table]) < position(idle[2][table])
    assert time(idle[1][table]) < time(idle[2][table])
    assert version == chain.report(Job.SILVER_MERGE, table).versions.get("silver", version)


@pytest.mark.parametrize("table", TABLES)
def test_without_its_connector_what_is_missing_gets_older_from_run_to_run(looks, stopped, table):
    told = [looks.ingested(table) for _ in range(2)]
    ages = [each.freshness["stale_seconds"] for each in told]

    assert 0 < ages[0] < ages[1]
    assert {each.freshness["lacks_since"] for each in told} == {told[0].freshness["lacks_since"]}
    assert "Kafka Connect was not asked" in told[0].freshness["connector"]


@pytest.mark.parametrize("table", TABLES)
def test_without_its_connector_a_claim_stands_still(stopped, table):
    first, second, at = stopped

    assert (time(first[table]), position(first[table])) == (time(second[table]), position(second[table]))
    assert time(second[table]) < at


@pytest.mark.parametrize(("table", "key"), [("customers", "id"), ("vouchers", "code")])
def test_every_row_that_was_seen_by_then_is_in_silver(chain, busy, stopped, table, key):
    told = chain.report(Job.SILVER_MERGE, table)
    written = getattr(busy, table)
    held = {number for (number,) in rows(chain.silver(table), (key,), lambda row: True)}
    by_then = {each for each, at in written.items() if at <= time(told)}

    assert by_then
    assert by_then <= held
    assert time(told) > stopped[2]
    assert time(told) < max(written.values())


def test_a_table_with_an_open_case_says_why_it_claims_nothing(chain, busy):
    found = chain.report(Job.SILVER_MERGE, "products")

    assert (found.withheld is None) == (open_cases(chain.lake.bronze("products")) == 0)
