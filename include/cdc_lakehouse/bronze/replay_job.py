"""Replay the quarantine of a pipeline's tables; a table without open cases costs no Spark work."""

from __future__ import annotations

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.bronze.replay import TableReplay
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role, registry_settings
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.registry.client import SchemaRegistry


def replay_tables(application: Application) -> list[TableResult]:
    """Reads bronze and writes bronze; Kafka may be away."""
    settings = registry_settings(application.connection(Role.REGISTRY))
    with SchemaRegistry(settings.url, login=settings.login, password=settings.password) as registry:

        def work(table: Table) -> TableResult:
            return replay_table(application, table, registry=registry)

        return each_table(with_discovered(application), work)


def replay_table(application: Application, table: Table, *, registry: SchemaRegistry) -> TableResult:
    uri = application.lake.bronze(table.name)
    state = read_state(uri, table=table.name)
    waiting = open_cases(uri) if state is not None else 0
    if state is None or state.ledger is None or not waiting:
        return TableResult(table=table.name, status=TableStatus.IDLE)
    if application.request.dry_run:
        return TableResult(table=table.name, status=TableStatus.PLANNED, open_cases=waiting)
    replay = TableReplay(application, table, registry=registry)
    return replay.run(waiting=waiting, version=state.version, held=state.ledger)
