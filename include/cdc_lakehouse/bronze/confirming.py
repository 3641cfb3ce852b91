"""Ask what the source's connector has committed, then Kafka how far it goes: observations for claims.

The order is what makes them true (decision 0033): the source's clock and log; what the connector has
committed; behind that the ends of Kafka's partitions; and behind those what the drain will read, so that it
reaches them. Nothing here may cost a run its success, or more than some seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.committed_offsets import committed_offsets
from cdc_lakehouse.bronze.freshness import Arrival
from cdc_lakehouse.bronze.incarnations import doubtful
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role, optional_connection
from cdc_lakehouse.config.source_settings import SourceSettings
from cdc_lakehouse.connect.connectors import (
    Connector,
    connector_state,
    connectors_by_prefix,
    read_connectors,
)
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.moments import moment_of
from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.debezium.connector_offset import complete_up_to, server_of
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.kafka.offsets_topic import Committed
from cdc_lakehouse.lake.confirmations import Confirmation, Confirmations
from cdc_lakehouse.lake.confirmations_file import read_confirmations, write_confirmations
from cdc_lakehouse.lake.ledger import Ends, has_ended

logger = logging.getLogger(__name__)
DATABASE_SETTING = "database.dbname"
"""Of a PostgreSQL connector: the database whose tables it reads."""


@dataclass(frozen=True, slots=True)
class Known:
    """Confirmations of one table and moments of its source."""

    confirmations: tuple[Confirmation, ...]
    """Newest first."""
    moments: tuple[Moment, ...]
    """Places of its source's log at known times, oldest first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers of the source, of its connectors, and of Kafka behind them."""

    database: SourceSettings
    moment: Moment
    relations: frozenset[str]
    """Tables that the source has, of those that topics are named after."""
    committed: Mapping[str, LogPosition]
    """By prefix of topics."""
    written: Ends


def ask(application: Application, cluster: Cluster) -> Asked | LakehouseError:
    """Ask source and connectors, then Kafka; return the error, and warn, where one does not answer.

    The drain has to be planned behind it.
    """
    topics = {topic for table in application.tables for topic in table.topics}
    try:
        database = Database.of(application.connection(Role.SOURCE))
        moment, relations = moment_of(database, relations={prefix_and_relation(topic)[1] for topic in topics})
        kafka = librdkafka_settings(application.connection(Role.KAFKA))
        committed = positions_in(committed_offsets(database, kafka))
        return Asked(database.settings, moment, relations, committed, cluster.written(topics))
    except LakehouseError as error:
        _warn(error)
        return error


def ask_connectors() -> Mapping[str, Connector] | None:
    """Return connectors by prefix of topics; None without a connection, or an answer of Kafka Connect."""
    try:
        connection = optional_connection(Role.CONNECT)
        return None if connection is None else connectors_by_prefix(read_connectors(connection))
    except LakehouseError as error:
        facts = {"reason": str(error), "advice": error.advice}
        logger.warning("the state of the connectors is not known", extra=facts)
        return None


def observe(
    application: Application,
    asked: Asked | LakehouseError,
    *,
    cluster: Cluster,
    facts: ClusterFacts,
    plans: Mapping[str, DrainPlan],
    connectors: Mapping[str, Connector] | None,
) -> dict[str, Known]:
    """Return what is known, by table. A second call adds another observation, as true as the first."""
    sure: set[str] = set()
    if isinstance(asked, Asked):
        own = _of_this_source(plans, asked=asked, connectors=connectors or {})
        sure = own & _not_cut(plans, cluster=cluster, facts=facts)
    known_by_table: dict[str, Known] = {}
    for group, names in _by_group(application.tables).items():
        uri = application.lake.confirmations(group)
        memory = read_confirmations(uri)
        if isinstance(asked, Asked):
            memory = memory.having_seen(asked.moment, address=asked.database.address)
            memory = memory.observing(
                _observed(memory, asked, [plans[name] for name in names if name in sure])
            )
            if not application.request.dry_run:
                write_confirmations(uri, memory)
        known_by_table |= {name: Known(tuple(memory.of(name)), memory.moments) for name in names}
    return known_by_table


def positions_in(found: Iterable[Committed]) -> dict[str, LogPosition]:
    """By prefix, as the connector said it last; none for one that takes a snapshot."""
    newest: dict[str, int | None] = {}
    for each in found:
        server = server_of(each.key)
        if server is not None:
            newest[server] = complete_up_to(each.offset)
    return {server: LogPosition(position) for server, position in newest.items() if position is not None}


def confirmation_of(plan: DrainPlan, asked: Asked, known: Confirmations) -> Confirmation | None:
    """What a table has to read, and what it has then; None where nobody can say.

    A topic that was made again in between held something else. One that is named after no table of the source
    may be another source's. Of a table whose topics are all gone there is nothing to say.
    """
    ends: dict[str, Mapping[int, int]] = {}
    positions = []
    for topic in plan.topics:
        server, relation = prefix_and_relation(topic.name)
        if not (topic.source in asked.written and server in asked.committed and relation in asked.relations):
            return None
        ends[plan.sources[topic.name]] = asked.written[topic.source]
        positions.append(asked.committed[server])
    if not positions:
        return None
    return Confirmation(min(positions), known.time_at(min(positions)), plan.ledger.epoch, ends)


def arrival_of(
    table: Table,
    known: Known,
    *,
    asked: Asked | LakehouseError,
    connectors: Mapping[str, Connector] | None,
    plan: DrainPlan | None,
) -> Arrival:
    """Return the facts of this run about the way of the table's changes to Kafka."""
    prefixes = {prefix_and_relation(topic)[0] for topic in table.topics}
    connector = connector_state(prefixes, connectors)
    ended = plan is not None and has_ended(plan.ledger)
    if isinstance(asked, LakehouseError):
        now = datetime.now(UTC)
        return Arrival(now, known.moments, has_ended=ended, connector=connector, refusal=asked)
    positions = [asked.committed.get(prefix) for prefix in prefixes]
    committed = min((position for position in positions if position is not None), default=None)
    relations = {prefix_and_relation(topic)[1] for topic in table.topics}
    return Arrival(
        asked.moment.at,
        known.moments,
        source=asked.moment.position,
        committed=None if None in positions else committed,
        is_at_source=relations <= asked.relations,
        unjudged=_explain_other_source(known, relations, prefixes, asked=asked, connectors=connectors or {}),
        has_ended=ended,
        connector=connector,
    )


def _explain_other_source(
    known: Known,
    relations: Set[str],
    prefixes: Set[str],
    *,
    asked: Asked,
    connectors: Mapping[str, Connector],
) -> str:
    """Return why the changes seem to come from another database than the one that was asked; empty if not.

    A table that it has confirmed and does not have any more is one that it dropped.
    """
    for connector in _reading_elsewhere(prefixes, asked=asked, connectors=connectors):
        other = connector.setting(DATABASE_SETTING, "")
        return f"connector {connector.name} reads the database {other}, not {asked.database.address}"
    missing = sorted(relations - asked.relations)
    if missing and not known.confirmations:
        return (
            f"{asked.database.address} has no table {', '.join(missing)} and never confirmed a change of it"
        )
    return ""


def _reading_elsewhere(
    prefixes: Iterable[str], *, asked: Asked, connectors: Mapping[str, Connector]
) -> list[Connector]:
    """Return connectors that read another database than the one that was asked, by their settings.

    Only the names of databases are compared: a server may have several addresses.
    """
    own = asked.database.database
    named = [connectors[prefix] for prefix in sorted(prefixes) if prefix in connectors]
    return [each for each in named if each.setting(DATABASE_SETTING, own) not in (own, None)]


def _of_this_source(
    plans: Mapping[str, DrainPlan], *, asked: Asked, connectors: Mapping[str, Connector]
) -> set[str]:
    """Return tables but those whose connector reads another database: their positions are not this one's."""
    prefixes = {
        name: {prefix_and_relation(topic.name)[0] for topic in plan.topics} for name, plan in plans.items()
    }
    return {
        name
        for name, of_table in prefixes.items()
        if not _reading_elsewhere(of_table, asked=asked, connectors=connectors)
    }


def _observed(known: Confirmations, asked: Asked, plans: Iterable[DrainPlan]) -> dict[str, Confirmation]:
    found = {plan.table: confirmation_of(plan, asked, known) for plan in plans}
    return {table: confirmation for table, confirmation in found.items() if confirmation is not None}


def _not_cut(plans: Mapping[str, DrainPlan], *, cluster: Cluster, facts: ClusterFacts) -> set[str]:
    """Tables but those whose log was cut, or may have been, and written anew below what they have read."""
    doubts = {
        name: doubtful(plan.ledger, [topic.name for topic in plan.topics], facts=facts, idle_too=True)
        for name, plan in plans.items()
    }
    try:
        cut = cluster.cut_logs({place: mark for marks in doubts.values() for place, mark in marks.items()})
    except LakehouseError as error:
        _warn(error)
        return {name for name in plans if not doubts[name]}
    return {name for name in plans if doubts[name].keys().isdisjoint(cut)}


def _by_group(tables: Iterable[Table]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table in tables:
        found.setdefault(table.group, []).append(table.name)
    return found


def _warn(error: LakehouseError) -> None:
    facts = {"reason": str(error), "advice": error.advice}
    logger.warning("no table says up to when it is complete", extra=facts)
