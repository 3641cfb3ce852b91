"""Ingest a group of tables: decide per table what to read, then drain the ones with news."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.bronze.ingest import TableIngest
from cdc_lakehouse.bronze.plan import DrainPlan, Starts, never_read, plan_drain
from cdc_lakehouse.bronze.start import first_offsets
from cdc_lakehouse.config.kafka_settings import bootstrap_servers, java_kafka_settings, librdkafka_settings
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role, registry_settings
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.ledger import Kind, Ledger, by_topic
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)


def ingest(application: Application) -> list[TableResult]:
    """One admin round tells Kafka's side for all tables; a table without news costs no Spark work."""
    connection = application.connection(Role.KAFKA)
    registry = registry_settings(application.connection(Role.REGISTRY))
    cluster = Cluster(librdkafka_settings(connection))
    facts = cluster.facts({topic for table in application.tables for topic in table.topics})
    with SchemaRegistry(registry.url, login=registry.login, password=registry.password) as schemas:

        def work(table: Table) -> TableResult:
            plan = _plan(application, table, cluster=cluster, facts=facts)
            if plan.is_idle:
                return TableResult(table=table.name, status=TableStatus.IDLE)
            logger.info("drain planned", extra={"backlog": plan.backlog})
            if application.request.dry_run:
                planned = by_topic(plan.added(plan.start, plan.until))
                return TableResult(table=table.name, status=TableStatus.IDLE, ranges=planned)
            table_ingest = TableIngest(application, table, plan=plan, registry=schemas)
            return table_ingest.run(kafka=java_kafka_settings(connection))

        return each_table(application, work, bootstrap=bootstrap_servers(connection))


def _plan(application: Application, table: Table, *, cluster: Cluster, facts: ClusterFacts) -> DrainPlan:
    state = read_state(application.lake.bronze(table.name), table=table.name)
    ledger = state.ledger if state is not None else None
    if ledger is None:
        ledger = Ledger(
            kind=Kind.BRONZE,
            pipeline=application.pipeline.name,
            table=table.name,
            cluster_id=facts.cluster_id,
        )
    first = _first(application.pipeline.start, table, ledger, cluster=cluster, facts=facts)
    return plan_drain(ledger, table.topics, facts=facts, first=first)


def _first(start: str, table: Table, ledger: Ledger, *, cluster: Cluster, facts: ClusterFacts) -> Starts:
    found: dict[str, Mapping[int, int]] = {}
    for topic in never_read(ledger, table.topics, facts=facts):
        found[topic.name] = first_offsets(start, topic, cluster=cluster)
    return found
