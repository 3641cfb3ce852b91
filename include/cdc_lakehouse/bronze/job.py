"""Ingest a group of tables: look at all of them, then drain the ones with news."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import UnfinishedError, each_table
from cdc_lakehouse.bronze.ingest import TableIngest
from cdc_lakehouse.bronze.look import DrainTask, look, looked
from cdc_lakehouse.bronze.read_again import read_again
from cdc_lakehouse.config.kafka_settings import bootstrap_servers, java_kafka_settings, librdkafka_settings
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role, registry_settings
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)


def ingest(application: Application) -> list[TableResult]:
    """One result per table, in the order of the pipeline; a table without news costs no Spark work."""
    if application.request.dry_run:
        return looked(application)
    found = look(application, session=application.session)
    tasks = {each.table.name: each for each in found if isinstance(each, DrainTask)}
    drained = {
        result.table: replace(result, time_to_loss=tasks[result.table].time_to_loss)
        for result in _drain(application, tasks)
    }
    return [drained[each.table.name] if isinstance(each, DrainTask) else each for each in found]


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
    with SchemaRegistry(registry.url, login=registry.login, password=registry.password) as schemas:

        def work(table: Table) -> TableResult:
            task = tasks[table.name]
            run = TableIngest(
                application,
                table,
                plan=task.plan,
                registry=schemas,
                topic_ids=task.cluster.topic_ids,
                read_again=partial(read_again, settings=librdkafka_settings(connection)),
            )
            try:
                return run.run(kafka=java_kafka_settings(connection))
            except Exception as exc:
                # What is committed stays, whatever came then, and the report says so.
                if (so_far := run.so_far()) is not None:
                    raise UnfinishedError(so_far) from exc
                raise

        return each_table(
            application,
            work,
            tables=[task.table for task in longest_first],
            bootstrap=bootstrap_servers(connection),
        )
