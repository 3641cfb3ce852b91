"""One table's plan: its state in the lake, Kafka's facts and a person's decisions brought together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.decided import NOTHING, Decided, require_what_stands
from cdc_lakehouse.bronze.incarnations import doubtful
from cdc_lakehouse.bronze.losses import having_seen
from cdc_lakehouse.bronze.plan import DrainPlan, never_read, plan_drain
from cdc_lakehouse.bronze.standing import (
    after_edit,
    after_restore,
    highest_applied,
    recovered,
    renumbered,
)
from cdc_lakehouse.bronze.start import NO_START, start_of
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import MAX_SOURCE_EPOCH
from cdc_lakehouse.errors import LakehouseError, LedgerLostError, LogTornError, WrongTableError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.damage import heal_torn_log, refuse_missing_files
from cdc_lakehouse.lake.ledger import Ends, Kind, Ledger, Ranges
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.newest_ledger import newest_ledger
from cdc_lakehouse.lake.state import (
    TableState,
    foreign_commit,
    foreign_name,
    look_into,
    read_state,
    step_in,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SessionOf = Callable[[], "SparkSession"]
_Healed = tuple[Ledger, Mapping[str, Any]]


class Standing(NamedTuple):
    """Where a table stands, and what was decided about that and is not committed yet."""

    ledger: Ledger
    healed: Mapping[str, Any]
    version: int | None = None
    """Of the table whose log said so."""


def plan_table(
    application: Application,
    table: Table,
    *,
    cluster: Cluster,
    facts: ClusterFacts,
    session: SessionOf | None,
    by_pattern: bool = False,
    since: datetime | None = None,
    remembered: Ranges | None = None,
) -> DrainPlan:
    """`session` is None for whoever only looks: a table whose rows must be asked is left to the job.

    Topics `by_pattern` may come and go. `since` is the moment at which the pipeline discovered its first
    table, for a table that was discovered later. `remembered` is what Kafka held unread at the last look.
    """
    decided = Decided.about(table.name, application.request)
    empty = Ledger(
        kind=Kind.BRONZE, pipeline=application.pipeline.name, table=table.name, cluster_id=facts.cluster_id
    )
    uri = application.lake.bronze(table.name)

    def planned(stated: Ledger, healed: Mapping[str, Any], turned: Ends | None = None) -> DrainPlan:
        ledger = having_seen(stated, remembered or {}, facts=facts)
        unread = never_read(ledger, table.topics, facts=facts) if application.drains else ()
        joins, setting = bool(ledger.sources), application.pipeline.start
        start = start_of(setting, unread, cluster=cluster, joins=joins, since=since) if unread else NO_START
        cut = cluster.cut_logs(doubtful(ledger, table.topics, facts=facts, idle_too=decided.fill_gaps))
        return plan_drain(
            ledger,
            table.topics,
            facts=replace(facts, cut=cut),
            start=start,
            decided=decided,
            healed=healed,
            by_pattern=by_pattern,
            turned=turned,
        )

    newest = newest_ledger(uri, table=table.name) if decided == NOTHING else None
    if newest is not None and newest.ledger.epoch <= MAX_SOURCE_EPOCH:
        # The newest commit alone may say that there is nothing to do; all else is looked at thoroughly.
        with suppress(LakehouseError):
            plan = planned(newest.ledger, {})
            if plan.is_idle:
                return plan
    found = standing(uri, empty, decided=decided, session=session)
    ledger, healed, version = _with_usable_epochs(application.lake, found)
    turned = _turned_back(application, ledger, decided=decided, version=version, session=session)
    return replace(planned(ledger, healed, turned), version=version)


def _with_usable_epochs(lake: Lake, found: Standing) -> Standing:
    """Raises for a silver that does not tell which epochs it has rows of, where that matters."""
    if found.ledger.epoch <= MAX_SOURCE_EPOCH:
        return found
    silver = read_state(lake.silver(found.ledger.table), table=found.ledger.table)
    applied = 0 if silver is None or silver.ledger is None else highest_applied(silver.ledger)
    ledger, numbers = renumbered(found.ledger, applied=applied)
    return Standing(ledger, {**found.healed, **numbers}, found.version)


def standing(uri: str, empty: Ledger, *, decided: Decided, session: SessionOf | None) -> Standing:
    """From the log; `session` is asked for only where nothing but the rows can tell."""
    state = _read_healed_state(uri, table=empty.table, may_heal=session is not None)
    if state is None:
        _refuse_what_does_not_stand(empty.table, decided, state)
        return Standing(empty, {})
    refuse_missing_files(uri, state.files, table=empty.table)
    if state.ledger is not None:
        _refuse_other(state.ledger, empty, uri=uri)
    ledger, healed = _judged(uri, empty, state, decided=decided, session=session)
    return Standing(ledger, healed, state.version)


def _read_healed_state(uri: str, *, table: str, may_heal: bool) -> TableState | None:
    """Return the state of the table; a log that a loss of power left torn is healed first, if it may be."""
    try:
        return look_into(uri, table=table)
    except LogTornError:
        if not may_heal:
            raise
        heal_torn_log(uri, table=table)
    return look_into(uri, table=table)


def _judged(
    uri: str, empty: Ledger, state: TableState, *, decided: Decided, session: SessionOf | None
) -> _Healed:
    _refuse_what_does_not_stand(empty.table, decided, state)
    if state.foreign:
        return _acknowledged(uri, empty, state, session=session)
    if state.is_lost:
        return _recovered(uri, empty, state, session=session)
    if state.ledger is not None and (state.step or 0) < state.ledger.seq:
        # Ids are what a commit is conditional on; the document says all that they said, but the step.
        return replace(state.ledger, seq=state.step or 0), {"recovered": "transaction ids"}
    return state.ledger or empty, {}


def _refuse_what_does_not_stand(table: str, decided: Decided, state: TableState | None) -> None:
    """Let a foreign commit pass only where a person names it, and a decision only where it names one.

    A decision about an older step was carried out by an earlier try.
    """
    foreign = state is not None and bool(state.foreign)
    named = decided.acknowledge_foreign
    if named is None:
        if state is not None and foreign:
            raise foreign_commit(state, table=table, of_bronze=True)
        return
    if not foreign and named and all(_is_carried_out(name, state) for name in named):
        return
    standing = frozenset({foreign_name(state)}) if state is not None and foreign else frozenset[str]()
    require_what_stands("acknowledge_foreign", table=table, named=named, standing=standing)


def _is_carried_out(name: str, state: TableState | None) -> bool:
    step = step_in(name)
    return state is not None and step is not None and step < state.seq


def _acknowledged(uri: str, empty: Ledger, state: TableState, *, session: SessionOf | None) -> _Healed:
    if state.ledger is None or state.stated is None:
        return _recovered(uri, empty, state, session=session)
    if state.restored is not None:
        return after_restore(state, state.ledger)
    if session is None:
        raise foreign_commit(state, table=empty.table, of_bronze=True)
    from cdc_lakehouse.bronze.held_rows import changed_rows  # who only looks does not pay for Spark

    found = changed_rows(session(), uri, ours=state.ledger, stated=state.stated)
    return after_edit(state, state.ledger, found)


def _recovered(uri: str, empty: Ledger, state: TableState, *, session: SessionOf | None) -> _Healed:
    if session is None:
        raise LedgerLostError(table=empty.table, path=uri)
    from cdc_lakehouse.bronze.held_rows import held_rows  # as above

    return recovered(empty, held_rows(session(), uri, table=empty.table), step=state.seq)


def _turned_back(
    application: Application,
    ledger: Ledger,
    *,
    decided: Decided,
    version: int | None,
    session: SessionOf | None,
) -> Ends:
    """Who only looks is not told: the run that does the work asks again."""
    if session is None or version is None or decided.epoch_to_open(ledger) is None:
        return {}
    from cdc_lakehouse.bronze.went_back import turned_back  # who only looks does not pay for Spark

    return turned_back(session, application.lake, ledger, version=version)


def _refuse_other(found: Ledger, wanted: Ledger, *, uri: str) -> None:
    if (found.kind, found.pipeline) != (wanted.kind, wanted.pipeline):
        whose = f"{found.kind} of {found.pipeline}.{found.table}"
        raise WrongTableError(table=wanted.table, path=uri, found=whose)
