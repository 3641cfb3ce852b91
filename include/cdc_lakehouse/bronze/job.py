"""Ingest a group of tables: look at all of them, then drain the ones with news."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from functools import partial

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import UnfinishedError, each_table
from cdc_lakehouse.bronze.freshness import with_freshness
from cdc_lakehouse.bronze.ingest import TableIngest
from cdc_lakehouse.bronze.interval import complete_intervals
from cdc_lakehouse.bronze.look import DrainTask, connect, look, looked
from cdc_lakehouse.bronze.read_again import read_again
from cdc_lakehouse.bronze.sharing import share_out
from cdc_lakehouse.bronze.together import SharedDrain
from cdc_lakehouse.config.kafka_settings import bootstrap_servers, java_kafka_settings, librdkafka_settings
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)


def ingest(application: Application) -> list[TableResult]:
    """One result per table, in the order of the pipeline; a table without news costs no Spark work."""
    if application.request.dry_run:
        return looked(application)
    with closing(connect(application)) as cluster:
        found = look(application, cluster, session=application.session)
        tasks = {each.table.name: each for each in found if isinstance(each, DrainTask)}
        busy = {name: task for name, task in tasks.items() if not task.plan.is_idle}
        drained = {
            result.table: _with_facts_of_look(result, tasks[result.table])
            for result in _drain(application, busy)
        }
    drained |= {
        name: _with_facts_of_look(TableResult(name, TableStatus.IDLE), tasks[name])
        for name in tasks.keys() - busy.keys()
    }
    results = [drained[each.table.name] if isinstance(each, DrainTask) else each for each in found]
    intervals = [(task.table, task.interval) for task in tasks.values() if task.interval is not None]
    return complete_intervals(application, intervals, results) if intervals else results


def _with_facts_of_look(result: TableResult, task: DrainTask) -> TableResult:
    """Return the result with what the look found out before anything was read."""
    left = task.unread - _count_committed(result)
    result = replace(result, time_to_loss=task.time_to_loss, lag_offsets=max(0, left))
    return result if task.arrival is None else with_freshness(result, task.table, task.arrival)


def _count_committed(result: TableResult) -> int:
    """Return how many offsets were committed; some may have come after the look."""
    return sum(until - start for partitions in result.ranges.values() for start, until in partitions.values())


def _drain(application: Application, tasks: dict[str, DrainTask]) -> list[TableResult]:
    if not tasks:
        return []
    connection = application.connection(Role.KAFKA)
    registry = registry_settings(application.connection(Role.REGISTRY))
    longest_first = sorted(tasks.values(), key=lambda task: -task.plan.backlog)
    logger.info(
        "tables with news",
        extra={"tables": len(tasks), "backlog": sum(task.plan.backlog for task in longest_first)},
    )
    with SchemaRegistry(registry) as schemas:
        runs = {}
        for task in longest_first:
            with log.bound(table=task.table.name):
                runs[task.table.name] = TableIngest(
                    application,
                    task.table,
                    plan=task.plan,
                    registry=schemas,
                    topic_ids=task.cluster.topic_ids,
                    read_again=partial(read_again, settings=librdkafka_settings(connection)),
                    confirmations=task.confirmations,
                )
        together = _drain_together(application, longest_first, runs)
        alone = [task.table for task in longest_first if task.table.name not in together]
        return [*together.values(), *_drain_alone(application, alone, runs)]


def _drain_together(
    application: Application, tasks: list[DrainTask], runs: dict[str, TableIngest]
) -> dict[str, TableResult]:
    """Those of the small tables that need no query of their own."""
    connection = application.connection(Role.KAFKA)
    found: dict[str, TableResult] = {}
    for group in share_out((task.plan, task.table.max_offsets_per_trigger) for task in tasks):
        shared = SharedDrain(
            application,
            {plan.table: runs[plan.table] for plan in group.plans},
            topic_ids=tasks[0].cluster.topic_ids,
            bootstrap=bootstrap_servers(connection),
        )
        try:
            found |= shared.run(kafka=java_kafka_settings(connection))
        except Exception as exc:  # noqa: BLE001 - met again by each table alone, where it is that table's
            logger.warning("tables are drained one by one", extra={"reason": type(exc).__name__})
            found |= shared.failed
    return found


def _drain_alone(
    application: Application, tables: list[Table], runs: dict[str, TableIngest]
) -> list[TableResult]:
    connection = application.connection(Role.KAFKA)

    def work(table: Table) -> TableResult:
        run = runs[table.name]
        try:
            return run.run(kafka=java_kafka_settings(connection))
        except Exception as exc:
            # What is committed stays, whatever came then, and the report says so.
            if (so_far := run.so_far()) is not None:
                raise UnfinishedError(so_far) from exc
            raise

    return each_table(application, work, tables=tables, bootstrap=bootstrap_servers(connection))
