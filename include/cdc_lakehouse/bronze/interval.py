"""What a run with an interval does to bronze: it fills gaps of the interval, and decodes its records again.

It reads nothing beyond the end of a table's ledger unless it is asked to. A second run of the same interval
finds nothing to do, unless records still cannot be decoded, or offsets are missing for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import UnfinishedError, each_table
from cdc_lakehouse.bronze.fill_plan import FillPlan
from cdc_lakehouse.bronze.gap_files import gaps_by_files
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.bronze.replay import TableReplay
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.errors import IntervalIncompleteError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.lake.coordinates import in_interval
from cdc_lakehouse.lake.interval import Interval, RowsOfInterval, count_cases, rows_of_interval
from cdc_lakehouse.lake.lag import count_offsets
from cdc_lakehouse.lake.ledger import Ranges
from cdc_lakehouse.lake.progress import shared
from cdc_lakehouse.lake.spans import Spans, in_words, offsets_in
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.registry.client import SchemaRegistry


@dataclass(frozen=True, slots=True)
class IntervalTask:
    """What a table has of the interval, and what it misses of it."""

    interval: Interval
    rows: RowsOfInterval | None
    """What bronze held before the run; None where that takes Spark to count."""
    undecodable: int
    gone: Spans
    """Gaps that Kafka cannot fill, and that may lie in the interval as far as the look could tell."""
    unread: int
    """Offsets that Kafka held and the table had not read."""
    begins_before_kafka: bool
    """True where Kafka lost the oldest records of the interval: bronze serves them."""
    decodes: bool = False
    """Whether some of the undecodable records may decode now."""
    knows_gone: bool = False
    """Whether the rows beside the gaps in `gone` leave them in the interval."""

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to do once the gaps are filled that Kafka holds."""
        return not self.decodes and not self.gone

    @property
    def can_do_nothing(self) -> bool:
        """Return whether all that is left is lost for good, whatever the run does."""
        return not self.decodes and self.knows_gone and bool(self.gone)

    def incomplete(self, result: TableResult, gone: Spans) -> UnfinishedError:
        """Return the failure of a table whose interval misses `gone`."""
        counts = {**result.counts, "gone": offsets_in(gone)}
        unfinished = UnfinishedError(self.described(replace(result, counts=counts)))
        unfinished.__cause__ = IntervalIncompleteError(table=result.table, offsets=in_words(gone))
        return unfinished

    def described(self, result: TableResult) -> TableResult:
        """Return `result` with what the interval was and what bronze had of it."""
        counts = {} if self.rows is None else {"present": self.rows.by_kafka_time}
        if self.undecodable:
            counts |= {"undecodable_before": self.undecodable, "undecodable_left": self.undecodable}
        document = {**self.interval.document(), "older_than_kafka": self.begins_before_kafka}
        return replace(
            result,
            counts={**counts, **result.counts},
            decisions={**result.decisions, "interval": document},
        )


def plan_interval(
    plan: DrainPlan, interval: Interval, *, offsets: Ranges, fills_all: bool = False
) -> DrainPlan:
    """Return the plan that fills gaps at `offsets`, which may have events of the interval; the ends stay.

    With `fills_all` it fills all gaps: a person has named the table in `fill_gaps`, too.
    """
    until = plan.until if interval.also_drain else plan.start
    if fills_all:
        return replace(plan, until=until)
    held = {
        source: {
            partition: parts
            for partition, gaps in partitions.items()
            if (span := offsets.get(source, {}).get(partition)) and (parts := shared(gaps, [span]))
        }
        for source, partitions in plan.fill.held.items()
    }
    fill = FillPlan(asked=True, held={name: parts for name, parts in held.items() if parts})
    return replace(plan, until=until, fill=fill)


def look_at_interval(
    application: Application, table: Table, plan: DrainPlan, interval: Interval, *, cluster: Cluster
) -> tuple[DrainPlan, IntervalTask]:
    """Return what the run does to a table, from Kafka's time index and bronze's log; no Spark."""
    offsets = offsets_of(interval, plan, cluster)
    uri = application.lake.bronze(table.name)
    fills_all = table.name in application.request.fill_gaps
    planned = plan_interval(plan, interval, offsets=offsets, fills_all=fills_all)
    undecodable, gone = count_cases(uri, interval), plan.fill.gone
    # What is filled tells more about the gaps beside it, and Spark is there by then.
    within = gaps_by_files(uri, gone, interval, sources=plan.ledger.sources) if planned.is_idle else None
    task = IntervalTask(
        interval,
        rows=rows_of_interval(uri, interval),
        undecodable=undecodable,
        gone=gone if within is None else within,
        unread=count_offsets(plan.unread),
        begins_before_kafka=_begins_before(plan, offsets),
        decodes=undecodable > 0 and _decodes(application, table, interval),
        knows_gone=within is not None,
    )
    return planned, task


def _decodes(application: Application, table: Table, interval: Interval) -> bool:
    """Return whether undecodable records of the interval may decode now, also where the look cannot tell."""
    from cdc_lakehouse.bronze.trial import count_decodable  # only few looks have such records

    with SchemaRegistry(registry_settings(application.connection(Role.REGISTRY))) as registry:
        return count_decodable(application, table, interval, registry=registry) != 0


def offsets_of(interval: Interval, plan: DrainPlan, cluster: Cluster) -> Ranges:
    """Return the offsets in Kafka that may have events of the interval, under the names that a ledger uses.

    They have no upper end: an event that was committed within the interval came to Kafka at any time since.
    """
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for topic in plan.topics:
        first = cluster.offsets_at(topic, interval.start)
        found[plan.sources[topic.name]] = {
            number: (first[number], max(first[number], partition.latest))
            for number, partition in topic.partitions.items()
        }
    return found


def complete_intervals(
    application: Application, tasks: Sequence[tuple[Table, IntervalTask]], results: Iterable[TableResult]
) -> list[TableResult]:
    """Do for each table what is left once its gaps are filled; tables that failed stay as they are."""
    so_far = {result.table: result for result in results}
    wanted = {table.name: task for table, task in tasks}
    tables = [table for table, task in tasks if not task.is_done and so_far[table.name].error is None]
    with SchemaRegistry(registry_settings(application.connection(Role.REGISTRY))) as registry:

        def complete(table: Table) -> TableResult:
            return _complete(application, table, wanted[table.name], so_far[table.name], registry)

        so_far |= {result.table: result for result in each_table(application, complete, tables=tables)}
    return [wanted[name].described(result) if name in wanted else result for name, result in so_far.items()]


def _complete(
    application: Application,
    table: Table,
    task: IntervalTask,
    result: TableResult,
    registry: SchemaRegistry,
) -> TableResult:
    """Decode records of the interval again, then refuse to be green with offsets that are gone."""
    state = read_state(application.lake.bronze(table.name), table=table.name)
    if state is None or state.ledger is None:
        return result
    if task.decodes:
        replay = TableReplay(application, table, registry=registry)
        replayed = replay.run(
            waiting=task.undecodable,
            version=state.version,
            held=state.ledger,
            meant=partial(in_interval, task.interval),
        )
        result = _joined(result, replayed)
    gone = _gone_within(application, table, task)
    if gone:
        raise task.incomplete(result, gone)
    return result


def _gone_within(application: Application, table: Table, task: IntervalTask) -> Spans:
    if not task.gone:
        return {}
    from cdc_lakehouse.bronze.gap_times import gaps_within  # a look does not pay for Spark

    uri = application.lake.bronze(table.name)
    return gaps_within(application.spark.isolated(small=True), uri, task.gone, task.interval)


def _joined(filled: TableResult, replayed: TableResult) -> TableResult:
    """Return one result of the two steps."""
    advanced = TableStatus.ADVANCED in (filled.status, replayed.status)
    return replace(
        filled,
        status=TableStatus.ADVANCED if advanced else TableStatus.IDLE,
        rows=filled.rows + replayed.rows,
        counts={
            **filled.counts,
            "decoded_again": replayed.rows,
            "undecodable_left": replayed.open_cases or 0,
        },
        seconds={**filled.seconds, **replayed.seconds},
        versions={**filled.versions, **replayed.versions},
    )


def _begins_before(plan: DrainPlan, offsets: Ranges) -> bool:
    """Return whether Kafka has lost records of some partition, and the interval begins with the oldest left.

    The time index then gives the oldest record for any earlier moment.
    """
    return any(
        partition.earliest > 0 and offsets[plan.sources[topic.name]][number][0] == partition.earliest
        for topic in plan.topics
        for number, partition in topic.partitions.items()
    )
