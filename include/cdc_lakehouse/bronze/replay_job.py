"""Replay the quarantine of a pipeline's tables; a table without open cases costs no Spark work."""

from __future__ import annotations

import logging
from dataclasses import replace

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import UnfinishedError, each_table
from cdc_lakehouse.bronze.closing import close_cases
from cdc_lakehouse.bronze.closing_plan import decisions_about
from cdc_lakehouse.bronze.decided import named_for
from cdc_lakehouse.bronze.replay import TableReplay
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.quarantine import listed_cases, open_cases
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)


def replay_tables(application: Application) -> list[TableResult]:
    """Reads bronze and writes bronze; Kafka may be away."""
    settings = registry_settings(application.connection(Role.REGISTRY))
    with SchemaRegistry(settings) as registry:

        def work(table: Table) -> TableResult:
            return replay_table(application, table, registry=registry)

        return each_table(with_discovered(application), work)


def replay_table(application: Application, table: Table, *, registry: SchemaRegistry) -> TableResult:
    """What a person decided about its cases first, then those that wait."""
    uri = application.lake.bronze(table.name)
    decided = _decided(application, table)
    try:
        state = read_state(uri, table=table.name)
        waiting = open_cases(uri) if state is not None else 0
        if state is None or state.ledger is None or not waiting:
            return _together(decided, TableResult(table=table.name, status=TableStatus.IDLE))
        if application.request.dry_run:
            return _together(
                decided, TableResult(table=table.name, status=TableStatus.PLANNED, open_cases=waiting)
            )
        replay = TableReplay(application, table, registry=registry)
        replayed = replay.run(waiting=waiting, version=state.version, held=state.ledger)
        if replayed.open_cases:
            _log_what_waits(uri, table.name)
        return _together(decided, replayed)
    except Exception as exc:
        # What was decided is committed, whatever came then, and the report says so.
        if decided is not None and decided.status is TableStatus.ADVANCED:
            raise UnfinishedError(decided) from exc
        raise


def _log_what_waits(uri: str, table: str) -> None:
    """Print what closes the cases that are left, ready to be pasted into the form of this DAG."""
    waiting = [case for case in listed_cases(uri) if case.closed is None]
    facts = {"of": table, "records": len(waiting), "close_cases": decisions_about(table, waiting)}
    logger.warning("records still cannot be decoded", extra=facts)


def _decided(application: Application, table: Table) -> TableResult | None:
    request = application.request
    if not any(
        named_for(table.name, lines) is not None for lines in (request.close_cases, request.reopen_cases)
    ):
        return None
    state = read_state(application.lake.bronze(table.name), table=table.name)
    return close_cases(application, table, state)


def _together(decided: TableResult | None, replayed: TableResult) -> TableResult:
    if decided is None:
        return replayed
    first = decided.status is TableStatus.ADVANCED and replayed.status is TableStatus.IDLE
    return replace(
        replayed,
        status=decided.status if first else replayed.status,
        rows=decided.rows + replayed.rows,
        counts={**decided.counts, **replayed.counts},
        open_cases=decided.open_cases if replayed.open_cases is None else replayed.open_cases,
        seconds={**decided.seconds, **replayed.seconds},
        versions={**decided.versions, **replayed.versions},
        decisions=decided.decisions,
    )
