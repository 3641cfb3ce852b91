"""Work through the tables of a group so that no table's failure stops another."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.failures import as_table_error, translated
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ExitCode, TableResult, TableStatus
from cdc_lakehouse.errors import SupersededError

logger = logging.getLogger(__name__)


def each_table(
    application: Application, work: Callable[[Table], TableResult], *, bootstrap: str = ""
) -> list[TableResult]:
    """One result per table, whatever happens to it."""
    results = []
    for table in application.tables:
        with log.bound(table=table.name):
            try:
                result = work(table)
            except Exception as exc:  # noqa: BLE001 - a table's failure, of whatever kind, is its own
                cause = translated(
                    exc,
                    table=table.name,
                    attempt=application.attempt,
                    bootstrap=bootstrap,
                    root=application.lake.root,
                )
                result = failed(table.name, cause)
            results.append(result)
    return results


def failed(table: str, exc: BaseException) -> TableResult:
    """The result of a table that an exception ended; a bug keeps its traceback in the log."""
    error = as_table_error(exc)
    if error.exit_code is ExitCode.BUG:
        logger.error("unexpected failure", exc_info=exc)
    status = TableStatus.SUPERSEDED if isinstance(exc, SupersededError) else TableStatus.FAILED
    return TableResult(table=table, status=status, error=error)
