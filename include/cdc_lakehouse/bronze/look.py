"""Look at every table of a group: what is there to read? One admin round, one ledger each, no Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import each_table, failed
from cdc_lakehouse.bronze.confirming import arrival_of, ask, ask_connectors, observe
from cdc_lakehouse.bronze.freshness import Arrival, with_freshness
from cdc_lakehouse.bronze.interval import IntervalTask, look_at_interval
from cdc_lakehouse.bronze.loss_watch import ends_of, ledger_in_the_log, times_to_loss
from cdc_lakehouse.bronze.losses import held_behind
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.bronze.planning import SessionOf, plan_table
from cdc_lakehouse.bronze.start import LATEST
from cdc_lakehouse.bronze.time_to_loss import Ends, TimeToLoss
from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.config.topics import is_pattern
from cdc_lakehouse.connect.connectors import Connector
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.discovery import Discovery, discover, needs_topics
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.claims import claim_of_bronze
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.discovered import with_tables_of_the_lake
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.lag import Unread, count_offsets, read_unread, write_unread
from cdc_lakehouse.lake.ledger import Ranges, by_topic, gaps_by_topic
from cdc_lakehouse.lake.spans import in_words
from cdc_lakehouse.lake.state import made_at

logger = logging.getLogger(__name__)

LOOKS_AT_ONCE = 8
"""A look waits for the store; on a local disk it waits for nothing."""


@dataclass(frozen=True, slots=True)
class DrainTask:
    """A table with news, and what to do about it."""

    table: Table
    plan: DrainPlan
    cluster: Cluster
    time_to_loss: Mapping[str, Any] | None = None
    """As the run found it, before it read anything."""
    confirmations: tuple[Confirmation, ...] = ()
    """What it may claim once it has read enough, newest first."""
    arrival: Arrival | None = None
    """Facts about the way of its changes to Kafka; None before the look has asked for them."""
    interval: IntervalTask | None = None
    """What a run with an interval has to do beside its plan."""

    @property
    def unread(self) -> int:
        """Offsets that Kafka held and the table had not read, whatever of them the run reads."""
        return count_offsets(self.plan.unread) if self.interval is None else self.interval.unread

    def planned(self) -> TableResult:
        """As a dry run tells it."""
        result = TableResult(
            table=self.table.name,
            status=TableStatus.PLANNED,
            ranges=by_topic(self.plan.added(self.plan.start, self.plan.until)),
            lag_offsets=self.unread,
            decisions={
                **(self.plan.ledger.decisions if self.plan.amends else {}),
                **self.plan.fill.decision(self.plan.fill.held, left=self.plan.fill.gone),
            },
            time_to_loss=self.time_to_loss,
        )
        return result if self.interval is None else self.interval.described(result)


def connect(application: Application) -> Cluster:
    """To be closed by the caller, once its tasks are done."""
    return Cluster(librdkafka_settings(application.connection(Role.KAFKA)))


def look(
    application: Application, cluster: Cluster, *, session: SessionOf | None
) -> list[DrainTask | TableResult]:
    """Per table its work, or its result where there is none: idle, or failed for what cannot be right."""
    settings, plans = librdkafka_settings(application.connection(Role.KAFKA)), dict[str, DrainPlan]()
    by_pattern = {table.name for table in application.tables if any(map(is_pattern, table.topics))}
    application, refused, since = _discovered(application, cluster)
    asked, connectors = ask(application, cluster), ask_connectors()
    facts = cluster.facts({topic for table in application.tables for topic in table.topics})
    remembered = _read_remembered(application)

    def look_at(table: Table) -> DrainTask | TableResult:
        _refuse_other_placeholder(application, table, connectors or {})
        plan = plan_table(
            application,
            table,
            cluster=cluster,
            facts=facts,
            session=session,
            by_pattern=table.name in by_pattern,
            since=since.get(table.name),
            remembered=remembered.get(table.name),
        )
        plans[table.name] = plan
        if application.interval is not None:
            return _look_at_interval(application, table, plan, application.interval, cluster=cluster)
        return _drain_task(table, plan, cluster=cluster)

    found = each_table(application, look_at, bootstrap=settings["bootstrap.servers"], at_once=LOOKS_AT_ONCE)
    standing, unread = _find_ends(application, plans, facts, remembered=remembered)
    left = times_to_loss(settings, facts, standing)
    known = observe(application, asked, cluster=cluster, facts=facts, plans=plans, connectors=connectors)
    arrivals = {
        table.name: arrival_of(
            table, known[table.name], asked=asked, connectors=connectors, plan=plans.get(table.name)
        )
        for table in application.tables
    }
    _warn_of_stopped_connectors(arrivals.values())
    results = []
    for table, result in zip(application.tables, found, strict=True):
        name, plan, confirmations = table.name, plans.get(table.name), known[table.name].confirmations
        lag = count_offsets(unread[name])
        claiming = _told(result, plan, time_to_loss=left.get(name), confirmations=confirmations, lag=lag)
        # Whether a promise is kept now says nothing about an interval that has passed.
        results.append(_with_arrival(claiming, table, arrivals[name]) if application.drains else claiming)
    return [*results, *refused]


def _drain_task(table: Table, plan: DrainPlan, *, cluster: Cluster) -> DrainTask | TableResult:
    """Return the drain that is planned, or the result of a table without news."""
    if plan.fill.gone:
        logger.warning("gaps stay: Kafka no longer holds them", extra={"ranges": in_words(plan.fill.gone)})
    if plan.is_idle:
        return _idle(table, plan)
    logger.info("drain planned", extra={"backlog": plan.backlog})
    return DrainTask(table=table, plan=plan, cluster=cluster)


def _look_at_interval(
    application: Application, table: Table, plan: DrainPlan, interval: Interval, *, cluster: Cluster
) -> DrainTask | TableResult:
    """Return what the run has to do to make the interval complete, or the result where it is."""
    plan, task = look_at_interval(application, table, plan, interval, cluster=cluster)
    if plan.is_idle and task.is_done:
        return task.described(_idle(table, plan))
    if plan.is_idle and task.can_do_nothing and not application.request.dry_run:
        raise task.incomplete(_idle(table, plan), task.gone)
    facts = {"to_fill": plan.fill.offsets, "undecodable": task.undecodable}
    logger.info("interval planned", extra=facts)
    return DrainTask(table=table, plan=plan, cluster=cluster, interval=task)


def _refuse_other_placeholder(
    application: Application, table: Table, connectors: Mapping[str, Connector]
) -> None:
    """Raise `PlaceholderDiffersError` where a connector of the table sends another placeholder."""
    expected = application.pipeline.unavailable_value_placeholder
    for prefix in {prefix_and_relation(topic)[0] for topic in table.topics} & connectors.keys():
        connectors[prefix].refuse_other_placeholder(expected, table=table.name)


def _with_arrival(
    task_or_result: DrainTask | TableResult, table: Table, arrival: Arrival
) -> DrainTask | TableResult:
    """Judge the freshness of an idle table; that of one with news is judged after its drain."""
    if isinstance(task_or_result, DrainTask):
        return replace(task_or_result, arrival=arrival)
    return with_freshness(task_or_result, table, arrival)


def _warn_of_stopped_connectors(arrivals: Iterable[Arrival]) -> None:
    for connector in dict.fromkeys(arrival.connector for arrival in arrivals):
        if not connector.runs:
            facts = {"connector": connector.sentence}
            logger.warning("a connector does not run: nothing new arrives", extra=facts)


def _find_ends(
    application: Application,
    plans: Mapping[str, DrainPlan],
    facts: ClusterFacts,
    *,
    remembered: Unread,
) -> tuple[dict[str, Ends], dict[str, Ranges]]:
    """Return the end of each table, and what Kafka has behind it; write the latter for other jobs.

    The log of a table that cannot be planned tells its end: its lag grows like that of any other. Of its
    topics that are gone, or that Kafka says nothing about, what was seen before is kept.
    """
    present = {topic.source for topic in facts.topics.values()}
    standing: dict[str, Ends] = {}
    unread: dict[str, Ranges] = {}
    for table in application.tables:
        plan = plans.get(table.name)
        if plan is not None:
            standing[table.name], unread[table.name] = plan.start, plan.unread
            continue
        ledger = ledger_in_the_log(application, table)
        topics = [facts.topics[topic] for topic in table.topics if topic in facts.topics]
        standing[table.name], unread[table.name] = ends_of(ledger, table), held_behind(ledger, topics)
        before = remembered.get(table.name, {})
        kept = {source: partitions for source, partitions in before.items() if source not in present}
        unread[table.name] = {**kept, **unread[table.name]}
    if not application.request.dry_run:
        groups = {table.group for table in application.tables}
        for group in groups:
            names = [table.name for table in application.tables if table.group == group]
            write_unread(application.lake.unread(group), {name: unread[name] for name in names})
    return standing, unread


def _read_remembered(application: Application) -> Unread:
    """Return what Kafka held unread at the last look, by table."""
    groups = {table.group for table in application.tables}
    return {
        table: ranges
        for group in groups
        for table, ranges in read_unread(application.lake.unread(group)).items()
    }


def _told(
    found: DrainTask | TableResult,
    plan: DrainPlan | None,
    *,
    time_to_loss: TimeToLoss | None,
    confirmations: tuple[Confirmation, ...],
    lag: int,
) -> DrainTask | TableResult:
    """With what was asked for all tables at once."""
    if time_to_loss is not None:
        found = replace(found, time_to_loss=time_to_loss.told())
    if isinstance(found, DrainTask):
        return replace(found, confirmations=confirmations)
    found = replace(found, lag_offsets=lag)
    if plan is None or not plan.ledger.sources:
        return found
    return replace(found, **claim_of_bronze(plan.ledger, confirmations).told())


def _idle(table: Table, plan: DrainPlan) -> TableResult:
    """Who asked for gaps that nobody has is told what stays missing."""
    result = TableResult(table=table.name, status=TableStatus.IDLE)
    if not plan.fill.asked:
        return result
    gaps, decisions = gaps_by_topic(plan.ledger), plan.fill.decision({}, left=plan.fill.gone)
    return replace(result, gaps=gaps, decisions=decisions)


def _discovered(
    application: Application, cluster: Cluster
) -> tuple[Application, list[TableResult], Mapping[str, datetime]]:
    """Return the application with all its tables, refused topics, and the moments of `_first_discovery`.

    A topic that can feed no table fails under its own name.
    """
    if not needs_topics(application.pipeline):
        return application, [], {}
    known = with_tables_of_the_lake(application.pipeline, root=application.lake.root)
    discovery = discover(known, cluster.topic_names())
    names = {table.name for table in known.tables}
    new = [table.name for table in discovery.pipeline.tables if table.name not in names]
    if new:
        logger.info("tables discovered", extra={"tables": new})
    first = _first_discovery(application, known) if new else None
    since = {} if first is None else dict.fromkeys(new, first)
    _report_topics(application, discovery)
    refused = [] if application.request.tables else [failed(e.topic, e) for e in discovery.refused]
    return application.with_tables_of(discovery.pipeline), refused, since


def _first_discovery(application: Application, known: Pipeline) -> datetime | None:
    """Return when the first discovered table of the pipeline was made, where `start: latest` asks for it.

    None where the first tables are discovered now: they begin at the end.
    """
    if known.start != LATEST:
        return None
    listed = {table.name for table in application.pipeline.tables}
    moments = [
        made_at(application.lake.bronze(table.name)) for table in known.tables if table.name not in listed
    ]
    return min(filter(None, moments), default=None)


def _report_topics(application: Application, discovery: Discovery) -> None:
    """Name topics that are left alone, or taken in doubt: a table would be missing in silence otherwise."""
    application.notes.update(discovery.notes())
    for name, topics in discovery.notes().items():
        logger.info(name.replace("_", " "), extra={"count": len(topics), "topics": topics})


def looked(application: Application) -> list[TableResult]:
    """The same as results, for whoever does none of the work."""
    with closing(connect(application)) as cluster:
        found = look(application, cluster, session=None)
    return [each.planned() if isinstance(each, DrainTask) else each for each in found]
