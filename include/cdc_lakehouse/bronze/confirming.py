"""Ask the source what its connector has confirmed, then Kafka how far it goes: observations for claims.

The order is what makes them true (decision 0033): the source's clock, its log, its slots; behind them the
ends of Kafka's partitions; and behind those what the drain will read, so that it reaches them. Nothing here
may cost a run its success, or more than some seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.incarnations import doubtful
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.slot_look import look_at_slots
from cdc_lakehouse.database.slots import SlotLook
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.confirmations import Confirmation, Reach
from cdc_lakehouse.lake.confirmations_file import read_confirmations, write_confirmations
from cdc_lakehouse.lake.ledger import Ends

logger = logging.getLogger(__name__)

Known = Mapping[str, tuple[Confirmation, ...]]
"""Table -> what is known of it, newest first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The source's answer, and what Kafka held behind it."""

    address: str
    look: SlotLook
    written: Ends


def ask(application: Application, cluster: Cluster) -> Asked | None:
    """None, and a warning, where somebody does not answer. To be asked before what a drain is to read."""
    topics = {topic for table in application.tables for topic in table.topics}
    try:
        database = Database.of(application.connection(Role.SOURCE))
        look = look_at_slots(database, relations={relation_of(topic) for topic in topics})
        return Asked(database.settings.address, look, cluster.written(topics))
    except LakehouseError as error:
        _warn(error)
        return None


def observe(
    application: Application,
    asked: Asked | None,
    *,
    cluster: Cluster,
    facts: ClusterFacts,
    plans: Mapping[str, DrainPlan],
) -> Known:
    """What is known by now. A second call adds another observation, which is as true as the first."""
    reached = {} if asked is None else _reached(asked, plans, cluster=cluster, facts=facts)
    found: dict[str, tuple[Confirmation, ...]] = {}
    for group, names in _by_group(application.tables).items():
        uri = application.lake.confirmations(group)
        known = read_confirmations(uri)
        if asked is not None:
            known = known.having_seen(asked.look, address=asked.address)
            confirmed = known.confirmed_in(asked.look)
            reach = {name: reached[name] for name in names if name in reached}
            if confirmed is not None and reach:
                known = known.with_reach(confirmed, reach)
            if not application.request.dry_run:
                write_confirmations(uri, known)
        found |= {name: tuple(known.of(name)) for name in names}
    return found


def relation_of(topic: str) -> str:
    """`shop.public.orders` -> `public.orders`, the table that it is named after."""
    return ".".join(topic.rsplit(".", 2)[-2:])


def reach_of(plan: DrainPlan, asked: Asked) -> Reach | None:
    """What a table has to read to have all that was confirmed; None where nobody can say.

    A topic that was made again in between held something else. One that is named after no table of the source
    may be another source's, and then these slots say nothing of it.
    """
    ends: dict[str, Mapping[int, int]] = {}
    for topic in plan.topics:
        if topic.source not in asked.written or relation_of(topic.name) not in asked.look.relations:
            return None
        ends[plan.sources[topic.name]] = asked.written[topic.source]
    return Reach(plan.ledger.epoch, ends)


def _reached(
    asked: Asked, plans: Mapping[str, DrainPlan], *, cluster: Cluster, facts: ClusterFacts
) -> dict[str, Reach]:
    """Without tables whose log may have been cut and written anew below what they have read."""
    found = {name: reach for name, plan in plans.items() if (reach := reach_of(plan, asked)) is not None}
    doubts = {
        name: doubtful(plan.ledger, [topic.name for topic in plan.topics], facts=facts, idle_too=True)
        for name, plan in plans.items()
    }
    try:
        cut = cluster.cut_logs({place: mark for marks in doubts.values() for place, mark in marks.items()})
    except LakehouseError as error:
        _warn(error)
        return {name: reach for name, reach in found.items() if not doubts[name]}
    return {name: reach for name, reach in found.items() if doubts[name].keys().isdisjoint(cut)}


def _by_group(tables: Iterable[Table]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table in tables:
        found.setdefault(table.group, []).append(table.name)
    return found


def _warn(error: LakehouseError) -> None:
    facts = {"reason": str(error), "advice": error.advice}
    logger.warning("no table says up to when it is complete", extra=facts)
