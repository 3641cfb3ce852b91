"""Verify a group of tables against the source database. Needs no Spark, so none is started."""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import cache

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.errors import TopicUnavailableError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.lake.ledger import Ends
from cdc_lakehouse.verification.table_verify import Verification

AT_ONCE = 2
"""Each reads a whole table of a database that has other work."""


def verify_tables(application: Application) -> list[TableResult]:
    """Those that say `verify: true`. Reads silver and the source; writes what is left open."""
    application = with_discovered(application)
    settings = librdkafka_settings(application.connection(Role.KAFKA))

    with ExitStack() as connections:

        @cache
        def cluster() -> Cluster:
            return connections.enter_context(closing(Cluster(settings)))

        verification = Verification(
            lake=application.lake,
            database=Database.of(application.connection(Role.SOURCE)),
            ends=lambda topic: ends_of(cluster(), topic),
            dry_run=application.request.dry_run,
        )
        tables = [table for table in application.tables if table.verify]
        return each_table(
            application,
            verification.run,
            tables=tables,
            bootstrap=settings["bootstrap.servers"],
            at_once=AT_ONCE,
        )


def ends_of(cluster: Cluster, topic: str) -> Ends:
    """How far Kafka goes now. A topic that is gone has no end that anybody will reach."""
    facts = cluster.facts([topic])
    if topic in facts.silent:
        raise TopicUnavailableError(table=topic, topic=topic, reason=facts.silent[topic])
    found = facts.topics.get(topic)
    if found is None:
        return {}
    return {found.source: {partition: offsets.latest for partition, offsets in found.partitions.items()}}
