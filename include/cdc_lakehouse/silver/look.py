"""Look at a table: what does bronze hold that silver has not applied? Two ledgers, no Spark."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.models import Mode, OnQuarantine, Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.debezium.proven import refuse_unproven, unproven_connectors
from cdc_lakehouse.errors import EpochBeyondBoundsError, LakehouseError, QuarantineOpenError
from cdc_lakehouse.lake.applied import Sweep
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.damage import refuse_damage, refuse_missing_files, was_set_aside
from cdc_lakehouse.lake.filesystem import is_object_store
from cdc_lakehouse.lake.interval import Interval, rows_of_interval
from cdc_lakehouse.lake.lag import offsets_behind
from cdc_lakehouse.lake.ledger import LARGEST_EPOCH, Ledger, Ranges, by_topic, topics_with_records
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.newest_ledger import ledger_at, newest_ledger
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.redo import Redo
from cdc_lakehouse.lake.schema_archive import archived_events
from cdc_lakehouse.lake.spans import Spans, in_words, together
from cdc_lakehouse.lake.state import TableState, has_steps, read_state, state_at
from cdc_lakehouse.run_modes import Recompute
from cdc_lakehouse.silver.claiming import Observation, Observed, claim_of_idle, observed_in
from cdc_lakehouse.silver.deletes_limit import AcceptedDeletes, Brake
from cdc_lakehouse.silver.made_by import has_other_settings
from cdc_lakehouse.silver.mode import mode_of
from cdc_lakehouse.silver.plan import (
    SMALL_OFFSETS,
    first_ledger,
    is_level,
    is_small,
    knows_all_of,
    plan_all_again,
    plan_late,
    plan_read_again,
    plan_redo,
    plan_work,
    stands_on_other_rows,
)

logger = logging.getLogger(__name__)

LOOKS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class MergeTask:
    """A table whose silver is behind its bronze, and by what."""

    table: Table
    mode: Mode
    bronze_version: int
    stated: int
    """The version of bronze whose commit has the ledger `held`."""
    held: Ledger
    """Bronze's."""
    before: Ledger
    """Silver's."""
    follows: int
    """The version of silver that was looked at; 0 where it is still to be made."""
    silver_stated: int | None
    """The version of silver whose commit has the ledger `before`; None where it has none yet."""
    work: Ranges
    open_cases: int
    """Records of bronze that could not be decoded."""
    late: Spans
    """What silver passed as missing and bronze holds now."""
    read_again: Spans
    """What silver could not take from rows in whose place bronze has others now; all that it has applied
    where its tombstones are made again."""
    redo: tuple[Redo, ...]
    """Steps of bronze whose rows were decoded again since silver passed them."""
    holds: bool
    """Whether keys wait for records that could not be decoded."""
    releases: bool
    """Whether events that were left out for such a key count from now on."""
    small: bool
    """Whether it is done before code for it is compiled."""
    accepted: AcceptedDeletes | None = None
    """The removal that a person has accepted, until it is carried out."""
    confirmations: tuple[Confirmation, ...] = ()
    """What silver may claim once it has applied enough, newest first."""
    unread: Ranges = field(default_factory=dict)
    """Offsets that Kafka had and bronze had not read at the last look of an ingest."""
    buries_again: bool = False
    """Whether its tombstones were set aside and are made again from all that bronze holds."""
    unproven: tuple[str, ...] = ()
    """Connectors that were never proven, that wrote what bronze holds and that the pipeline accepts."""
    interval: Interval | None = None
    """What the run is asked to make complete."""
    is_level: bool = False
    """Whether silver has applied all of bronze, and only keys of the interval are looked at."""

    sweeps: tuple[Sweep, ...] = ()
    """Sweeps that a person has decided and silver has not applied (decision 0060)."""

    @property
    def recomputed(self) -> Interval | None:
        """The interval whose keys are computed again, whatever changed; None where only changes count."""
        wanted = self.interval is not None and self.interval.recompute is Recompute.ALL
        return self.interval if wanted else None

    @property
    def brake(self) -> Brake:
        """Return the limit of what the merge may remove."""
        return Brake(self.table.name, self.table.deletes_limit, self.before.seq, self.stated, self.accepted)

    def planned(self) -> TableResult:
        """As a dry run tells it."""
        decisions = {} if self.interval is None else {"interval": self.interval.document()}
        return TableResult(
            table=self.table.name,
            status=TableStatus.PLANNED,
            ranges=by_topic(self.work),
            decisions=decisions,
        )

    def advanced(
        self,
        ledger: Ledger,
        *,
        seen_through: datetime | None,
        version: int,
        rows: int,
        counts: Mapping[str, int],
        seconds: Mapping[str, float],
    ) -> TableResult:
        """Return the result of a merge whose commit states `ledger` as this version of silver."""
        age = None if seen_through is None else datetime.now(UTC) - seen_through
        return TableResult(
            table=self.table.name,
            status=TableStatus.ADVANCED,
            ranges=by_topic(ledger.added),
            rows=rows,
            counts=counts,
            open_cases=self.open_cases,
            seen_through=ledger.seen_through,
            lag_seconds=None if age is None else round(age.total_seconds(), 1),
            lag_offsets=offsets_behind(self.held, ledger, unread=self.unread),
            seconds=seconds,
            decisions=ledger.decisions,
            unproven_source=", ".join(self.unproven) or None,
            versions={"bronze": self.bronze_version, "silver": version},
        )


def look_at(
    application: Application,
    table: Table,
    *,
    observed: Observed | None = None,
    sweeps: tuple[Sweep, ...] = (),
) -> MergeTask | TableResult:
    """`observed` is what a job has read for all its tables, `sweeps` what a repair has decided."""
    lake = application.lake
    observation = (observed or observed_in(lake))(table)
    accepted = AcceptedDeletes.about(table.name, application.request.accept_deletes)
    interval = application.interval
    level = _level_at_first_sight(lake, table) if interval is None and not sweeps else None
    if level is not None:
        if accepted is not None:
            accepted.refuse_unless_carried_out(level[1])
        return _idle(lake, *level, observation=observation)
    layers = _read_layers(lake, table, accepted=accepted)
    if layers is None:
        return TableResult(table=table.name, status=TableStatus.IDLE)
    held, before = layers.held, layers.before
    holding = table.on_quarantine is OnQuarantine.HOLD
    other_rows = _stands_on_other_rows(lake, held, before)
    sweeps = tuple(sweep for sweep in sweeps if sweep not in before.applied.sweeps)
    other_rows_or_settings = other_rows or has_other_settings(before, table) or bool(sweeps)
    level_now = is_level(held, before, holds=holding, other_rows=other_rows_or_settings)
    to_recompute = _rows_to_recompute(lake, table, interval)
    if level_now and to_recompute == 0:
        if layers.accepted is not None:
            layers.accepted.refuse_unless_carried_out(before)
        return _with_interval(_idle(lake, held, before, observation=observation), interval)
    unproven = _accepted_unproven(application, table, held)
    task = _task(lake, table, layers, other_rows=other_rows, observation=observation)
    small = task.small and to_recompute <= SMALL_OFFSETS
    only_interval = level_now and not task.buries_again
    task = replace(task, unproven=unproven, interval=interval, is_level=only_interval, small=small)
    return replace(task, sweeps=sweeps)


def _accepted_unproven(application: Application, table: Table, held: Ledger) -> tuple[str, ...]:
    """Return the connectors behind bronze that were never proven. Raises unless the pipeline accepts them:
    an earlier release, or a pipeline file that accepted them once, may have read what they wrote."""
    archives = application.lake.archives
    texts = [text for topic in topics_with_records(held) for text in archived_events(archives, topic)]
    if not application.pipeline.unproven_source:
        refuse_unproven(texts, table=table.name)
    return tuple(unproven_connectors(texts))


def _rows_to_recompute(lake: Lake, table: Table, interval: Interval | None) -> float:
    """Return about how many rows of bronze an interval has whose keys are all computed again.

    Infinite where a look would have to open too many files to know.
    """
    if interval is None or interval.recompute is not Recompute.ALL:
        return 0
    rows = rows_of_interval(lake.bronze(table.name), interval)
    return math.inf if rows is None else rows.by_kafka_time or int(rows.any_row)


def _with_interval(result: TableResult, interval: Interval | None) -> TableResult:
    return result if interval is None else replace(result, decisions={"interval": interval.document()})


@dataclass(frozen=True, slots=True)
class _Layers:
    """Both layers of a table; bronze at the version that the merge is to read."""

    bronze: TableState
    held: Ledger
    """Bronze's."""
    silver: TableState | None
    before: Ledger
    """Silver's."""
    accepted: AcceptedDeletes | None


def _read_layers(lake: Lake, table: Table, *, accepted: AcceptedDeletes | None) -> _Layers | None:
    """Return None for a table that has no bronze yet. Raises for a decision about something else."""
    # Silver first: bronze only grows, and one that is older than its silver is taken for a restored one.
    silver = read_state(lake.silver(table.name), table=table.name)
    bronze = read_state(lake.bronze(table.name), table=table.name)
    if bronze is None or bronze.ledger is None:
        return None
    _refuse_damage(lake, table, bronze=bronze, silver=silver)
    held = bronze.ledger
    if held.epoch > LARGEST_EPOCH:
        raise EpochBeyondBoundsError(table=table.name, epoch=held.epoch, highest=LARGEST_EPOCH)
    before = first_ledger(held) if silver is None or silver.ledger is None else silver.ledger
    if accepted is not None and not accepted.is_pending(before):
        accepted.refuse_unless_carried_out(before)
        accepted = None
    if accepted is not None and accepted.is_ahead_of(before):
        bronze, held = _bronze_of(accepted, lake, newest=(bronze, held))
    return _Layers(bronze, held, silver, before, accepted)


def _task(
    lake: Lake,
    table: Table,
    layers: _Layers,
    *,
    other_rows: bool,
    observation: Observation,
) -> MergeTask:
    bronze, held, silver, before = layers.bronze, layers.held, layers.silver, layers.before
    mode = mode_of(table, bronze=bronze.schema, silver=None if silver is None else silver.schema)
    waiting = open_cases(lake.bronze(table.name))
    if waiting and table.on_quarantine is OnQuarantine.STOP:
        raise QuarantineOpenError(table=table.name, count=waiting)
    holding = table.on_quarantine is OnQuarantine.HOLD
    work, redo = plan_work(held, before), plan_redo(held, before)
    late = plan_late(held, before)
    buries_again = mode is Mode.UPSERT and _lacks_tombstones(lake, before)
    read_again = _spans_again(held, before, buries_again=buries_again, other_rows=other_rows)
    facts = {"ranges": work, "late": in_words(late), "decoded_again": sum(each.rows for each in redo)}
    logger.info("merge planned", extra=facts)
    size = 0 if silver is None else silver.size_bytes
    small = is_small(work, late=together(late, read_again), table_bytes=size)
    return MergeTask(
        table,
        mode=mode,
        bronze_version=bronze.version,
        stated=bronze.version if bronze.stated is None else bronze.stated,
        held=held,
        before=before,
        follows=0 if silver is None else silver.version,
        silver_stated=None if silver is None else silver.stated,
        work=work,
        open_cases=waiting,
        late=late,
        read_again=read_again,
        redo=redo,
        holds=holding and waiting > 0,
        releases=before.parked and not holding,
        small=small,
        accepted=layers.accepted,
        buries_again=buries_again,
        confirmations=observation.confirmations,
        unread=observation.unread,
    )


def _bronze_of(
    accepted: AcceptedDeletes, lake: Lake, *, newest: tuple[TableState, Ledger]
) -> tuple[TableState, Ledger]:
    """Return bronze at the version that the person saw, or the newest one if that version is gone.

    With the newest one the merge refuses the decision and names its own removal.
    """
    state, ledger = newest
    if state.stated == accepted.bronze:
        return newest
    seen = state_at(lake.bronze(ledger.table), accepted.bronze, table=ledger.table)
    return newest if seen is None or seen.ledger is None else (seen, seen.ledger)


def _refuse_damage(lake: Lake, table: Table, *, bronze: TableState, silver: TableState | None) -> None:
    """Raise for missing data files and damaged logs; tables beside silver are asked for here only."""
    refuse_missing_files(lake.bronze(table.name), bronze.files, table=table.name)
    if silver is not None:
        refuse_missing_files(lake.silver(table.name), silver.files, table=table.name)
    for uri in lake.beside_silver(table.name):
        if not is_object_store(uri):
            refuse_damage(uri, table=table.name)


def _lacks_tombstones(lake: Lake, before: Ledger) -> bool:
    """Whether tombstones were set aside and nobody has made them again, which is one commit. The first step
    of silver makes them anyway."""
    uri = lake.tombstones(before.table)
    return before.seq > 0 and was_set_aside(uri) and not has_steps(uri)


def _spans_again(held: Ledger, before: Ledger, *, buries_again: bool, other_rows: bool) -> Spans:
    if buries_again:
        logger.warning("tombstones are made again from all of bronze", extra={"of": before.table})
        return plan_all_again(held, before)
    return plan_read_again(held, before) if other_rows else {}


def _idle(lake: Lake, bronze: Ledger, silver: Ledger, *, observation: Observation) -> TableResult:
    """Without anything to apply a table may still be complete up to a later time. Silver that is not there
    yet says nothing."""
    result = TableResult(table=bronze.table, status=TableStatus.IDLE)
    if silver.seq == 0:
        return result
    claim = claim_of_idle(lake, silver, bronze=bronze, confirmations=observation.confirmations)
    lag = offsets_behind(bronze, silver, unread=observation.unread)
    return replace(result, lag_offsets=lag, **claim.told())


def _stands_on_other_rows(lake: Lake, held: Ledger, before: Ledger) -> bool:
    if before.stands_on is None or not before.passed_over:
        return False
    found = ledger_at(lake.bronze(held.table), before.stands_on[0], table=held.table)
    return stands_on_other_rows(before, held, found=found)


def _level_at_first_sight(lake: Lake, table: Table) -> tuple[Ledger, Ledger] | None:
    """Bronze's and silver's ledger where the newest commits alone say that they are level; whatever else they
    say is asked for again, and thoroughly."""
    bronze = newest_ledger(lake.bronze(table.name), table=table.name)
    silver = newest_ledger(lake.silver(table.name), table=table.name)
    if bronze is None or silver is None:
        return None
    if has_other_settings(silver.ledger, table) or not knows_all_of(silver.ledger, bronze.ledger):
        return None
    try:
        holds = table.on_quarantine is OnQuarantine.HOLD
        return (bronze.ledger, silver.ledger) if is_level(bronze.ledger, silver.ledger, holds=holds) else None
    except LakehouseError:
        return None


def looked(application: Application) -> list[TableResult]:
    """One result per table, for whoever does none of the work."""
    application = with_discovered(application)
    observed = observed_in(application.lake)
    found = each_table(
        application, lambda table: look_at(application, table, observed=observed), at_once=LOOKS_AT_ONCE
    )
    return [each.planned() if isinstance(each, MergeTask) else each for each in found]
