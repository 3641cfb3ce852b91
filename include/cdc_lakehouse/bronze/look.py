"""Look at every table of a group: what is there to read? One admin round, one ledger each, no Spark."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import each_table, failed
from cdc_lakehouse.bronze.plan import DrainPlan, Starts, never_read, plan_drain
from cdc_lakehouse.bronze.start import first_offsets
from cdc_lakehouse.config.kafka_settings import bootstrap_servers, librdkafka_settings
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.discovery import discover, needs_topics
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.discovered import with_tables_of_the_lake
from cdc_lakehouse.lake.ledger import Kind, Ledger, by_topic
from cdc_lakehouse.lake.newest_ledger import newest_ledger
from cdc_lakehouse.lake.state import read_state

logger = logging.getLogger(__name__)

LOOKS_AT_ONCE = 8
"""A look waits for the store; on a local disk it waits for nothing."""


@dataclass(frozen=True, slots=True)
class DrainTask:
    """A table with news, and what to do about it."""

    table: Table
    plan: DrainPlan

    def planned(self) -> TableResult:
        """As a dry run tells it."""
        ranges = by_topic(self.plan.added(self.plan.start, self.plan.until))
        return TableResult(table=self.table.name, status=TableStatus.PLANNED, ranges=ranges)


def look(application: Application) -> list[DrainTask | TableResult]:
    """Per table its work, or its result where there is none: idle, or failed for what cannot be right."""
    connection = application.connection(Role.KAFKA)
    cluster = Cluster(librdkafka_settings(connection))
    application, refused = _discovered(application, cluster)
    facts = cluster.facts({topic for table in application.tables for topic in table.topics})

    def look_at(table: Table) -> DrainTask | TableResult:
        if _is_idle_at_first_sight(application, table, cluster=cluster, facts=facts):
            return TableResult(table=table.name, status=TableStatus.IDLE)
        plan = _plan(application, table, cluster=cluster, facts=facts)
        if plan.is_idle:
            return TableResult(table=table.name, status=TableStatus.IDLE)
        logger.info("drain planned", extra={"backlog": plan.backlog})
        return DrainTask(table=table, plan=plan)

    bootstrap = bootstrap_servers(connection)
    found = each_table(application, look_at, bootstrap=bootstrap, at_once=LOOKS_AT_ONCE)
    return [*found, *refused]


def _discovered(application: Application, cluster: Cluster) -> tuple[Application, list[TableResult]]:
    """With all tables that there are by now; topics that can feed none fail under their own names."""
    if not needs_topics(application.pipeline):
        return application, []
    known = with_tables_of_the_lake(application.pipeline, root=application.lake.root)
    discovery = discover(known, cluster.topic_names())
    told = set(application.pipeline.tables) | set(known.tables)
    new = [table.name for table in discovery.pipeline.tables if table not in told]
    if new:
        logger.info("tables discovered", extra={"tables": new})
    refused = [] if application.request.tables else [failed(e.topic, e) for e in discovery.refused]
    return application.with_tables_of(discovery.pipeline), refused


def looked(application: Application) -> list[TableResult]:
    """The same as results, for whoever does none of the work."""
    return [found.planned() if isinstance(found, DrainTask) else found for found in look(application)]


def _is_idle_at_first_sight(
    application: Application, table: Table, *, cluster: Cluster, facts: ClusterFacts
) -> bool:
    """Whether the newest commit alone says so; whatever else it says is asked for again, and thoroughly."""
    newest = newest_ledger(application.lake.bronze(table.name), table=table.name)
    if newest is None:
        return False
    try:
        return _plan_from(newest.ledger, application, table, cluster=cluster, facts=facts).is_idle
    except LakehouseError:
        return False


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
    return _plan_from(ledger, application, table, cluster=cluster, facts=facts)


def _plan_from(
    ledger: Ledger, application: Application, table: Table, *, cluster: Cluster, facts: ClusterFacts
) -> DrainPlan:
    first = _first(application.pipeline.start, table, ledger, cluster=cluster, facts=facts)
    return plan_drain(ledger, table.topics, facts=facts, first=first)


def _first(start: str, table: Table, ledger: Ledger, *, cluster: Cluster, facts: ClusterFacts) -> Starts:
    found: dict[str, Mapping[int, int]] = {}
    for topic in never_read(ledger, table.topics, facts=facts):
        found[topic.name] = first_offsets(start, topic, cluster=cluster)
    return found
