"""Work through the tables of a group so that no table's failure stops another."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.failures import as_table_error, translated
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ExitCode, TableResult, TableStatus
from cdc_lakehouse.errors import SupersededError

logger = logging.getLogger(__name__)

TABLES_AT_ONCE = 4
"""Small tables spend their time in the driver, waiting: measured 1.8x on two cores."""


def each_table(
    application: Application,
    work: Callable[[Table], TableResult],
    *,
    bootstrap: str = "",
    at_once: int = TABLES_AT_ONCE,
) -> list[TableResult]:
    """One result per table in their order, whatever happens to any; `at_once` run side by side."""

    def guarded(table: Table) -> TableResult:
        with log.bound(table=table.name):
            try:
                return work(table)
            except Exception as exc:  # noqa: BLE001 - a table's failure, of whatever kind, is its own
                cause = translated(
                    exc,
                    table=table.name,
                    attempt=application.attempt,
                    bootstrap=bootstrap,
                    root=application.lake.root,
                )
                return failed(table.name, cause)

    with ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="table") as pool:
        # A thread starts with no context of its own: it gets the facts bound to log lines here.
        futures = [pool.submit(copy_context().run, guarded, table) for table in application.tables]
        return [future.result() for future in futures]


def failed(table: str, exc: BaseException) -> TableResult:
    """The result of a table that an exception ended; a bug keeps its traceback in the log."""
    error = as_table_error(exc)
    if error.exit_code is ExitCode.BUG:
        logger.error("unexpected failure", exc_info=exc)
    status = TableStatus.SUPERSEDED if isinstance(exc, SupersededError) else TableStatus.FAILED
    return TableResult(table=table, status=status, error=error)
