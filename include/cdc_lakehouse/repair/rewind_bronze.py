"""Take bronze back to a version: its rows and its offsets in one commit, which writes no data.

What was read behind that version is read from Kafka again. Silver that has applied these records waits until
bronze has them again (decision 0063).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.incarnations import doubtful, sources_of
from cdc_lakehouse.bronze.look import connect
from cdc_lakehouse.bronze.losses import aged_out, go_on_behind, told
from cdc_lakehouse.bronze.standing import went_back
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import (
    DataError,
    RepairNotVerifiedError,
    RepairRefusedError,
    TopicUnavailableError,
)
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.bronze_schema import ATTEMPT
from cdc_lakehouse.lake.coordinates import with_topic_id
from cdc_lakehouse.lake.file_commit import commit_version_again
from cdc_lakehouse.lake.ledger import Ledger, Ranges, topic_of
from cdc_lakehouse.lake.newest_ledger import ledger_at
from cdc_lakehouse.lake.snapshot import files_at
from cdc_lakehouse.lake.state import TableState, look_into
from cdc_lakehouse.lake.versions import OwnVersion
from cdc_lakehouse.repair.contents import plan_changed
from cdc_lakehouse.repair.moment import Moment, find_version, problem_of_files
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs, newest_erasure
from cdc_lakehouse.repair.replacement import DECISION, read_table, version_that_carried_out

AskKafka = Callable[[Application, Ledger], ClusterFacts]
"""Asks Kafka what it holds of the topics of a ledger."""
_PLACE = ("topic", "partition", "offset", "topic_id")


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """What a rewind leaves to the next ingest."""

    ledger: Ledger
    """Of the table that went back."""
    ranges: Ranges
    """Offsets that were read, and are to be read again."""
    lost: Ranges
    """Those of them that Kafka no longer holds: gaps from then on."""


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """How the rows of one partition change."""

    topic: str
    partition: int
    removed: int
    added: int
    changed: int


def ask_kafka(application: Application, ledger: Ledger) -> ClusterFacts:
    """Return what Kafka holds of all topics of `ledger`, and which of their logs were cut since."""
    topics = sorted({topic_of(source) for source in ledger.sources})
    with closing(connect(application)) as cluster:
        facts = cluster.facts(topics)
        cut = cluster.cut_logs(doubtful(ledger, topics, facts=facts, idle_too=True))
    return replace(facts, cut=cut)


def plan_reading_again(ours: Ledger, after: Ledger, ask: Callable[[], ClusterFacts]) -> ReadAgain:
    """Return what is to be read again once a table with the ledger `ours` has the ledger `after`.

    Kafka is asked only where there is something to read. Raise `RepairRefusedError` where it has another log
    than the one that the table has read.
    """
    ranges = _ranges_behind(after, ours)
    if not ranges:
        return ReadAgain(after, {}, {})
    facts, table = ask(), ours.table
    topics = []
    for name in sorted({topic_of(source) for source in ranges}):
        if name in facts.silent:
            raise TopicUnavailableError(table=table, topic=name, reason=facts.silent[name])
        if name not in facts.topics:
            raise _refused(table, f"Kafka has no topic {name}: what bronze has of it could not be read again")
        topics.append(facts.topics[name])
    try:
        sources = sources_of(ours, topics, facts=facts, epoch=None)
    except DataError as exc:
        raise _refused(table, f"Kafka has not the log any more that bronze has read ({exc})") from exc
    earlier = sorted(ranges.keys() - sources.values())
    if earlier:
        raise _refused(
            table, f"it would take rows of an earlier incarnation of a topic ({', '.join(earlier)})"
        )
    gone = aged_out(after, topics, sources)
    lost = {
        source: {
            p: (start, min(gone[source][p][1], until))
            for p, (start, until) in spans.items()
            if p in gone[source]
        }
        for source, spans in ranges.items()
        if source in gone
    }
    lost = {source: spans for source, spans in lost.items() if spans}
    return ReadAgain(go_on_behind(after, lost), ranges, lost)


@dataclass(frozen=True, slots=True)
class RewindBronze:
    application: Application
    table: Table
    ask: AskKafka

    def plan(self, moment: Moment) -> TablePlan:
        uri, name = self._uri, self.table.name
        live, ours = self._require_live()
        target = find_version(uri, moment, table=name, newest=live.version, problem_of=self._problem_of)
        again = self._plan_reading_again(live, ours, target.ledger)
        rows = self._compare_rows(live, target.version)
        read_again = _count(again.ranges) - _count(again.lost)
        time = target.committed_at.isoformat(timespec="seconds")
        return TablePlan(
            operation=Job.REWIND,
            pipeline=self.application.pipeline.name,
            table=name,
            options=moment.to_options(),
            basis={
                "repairs": begun_repairs(self.application.lake, name),
                "life": live.life,
                "version": target.version,
                "attempt": target.ledger.attempt,
                "lost": told(again.lost),
            },
            effects={
                **_count_rows(rows or ()),
                "offsets_read_again": read_again,
                "offsets_lost": _count(again.lost),
            },
            summary=f"bronze goes back to version {target.version} of {time}: "
            f"{read_again} offset(s) are read again, {_count(again.lost)} are lost",
            details=(*_sentences(rows, again), *self._warnings(live, again)),
            is_needed=target.version != live.stated or bool(live.foreign),
        )

    def act(self, plan: TablePlan) -> Outcome:
        uri, name, version = self._uri, self.table.name, plan.basis["version"]
        carried_out = version_that_carried_out(uri, plan.digest)
        if carried_out is not None:
            return Outcome(facts={"after": carried_out}, summary="carried out by an earlier try")
        live, ours = self._require_live()
        if live.life != plan.basis["life"]:
            raise plan_changed(plan, "bronze was made again in the meantime")
        back = ledger_at(uri, version, table=name)
        if back is None or back.attempt != plan.basis["attempt"]:
            raise plan_changed(plan, f"version {version} of bronze is not in its log any more")
        problem = problem_of_files(uri, version)
        if problem is not None:
            raise plan_changed(plan, problem)
        again = self._plan_reading_again(live, ours, back)
        if told(again.lost) != plan.basis["lost"]:
            raise plan_changed(plan, f"Kafka has lost other offsets by now: {told(again.lost) or 'none'}")
        decision = {"operation": plan.operation, "plan": plan.digest, "version": version}
        attempt = self.application.attempt
        after = again.ledger.amended(again.ledger.sources, attempt=attempt, decisions={DECISION: decision})
        after = replace(after, valid_through=None)
        before, session = replace(ours, seq=live.seq), self.application.spark.isolated()
        committed = commit_version_again(
            session, uri, version=version, before=before, after=after, known=live.version
        )
        return Outcome(
            counts={"offsets_read_again": _count(again.ranges) - _count(again.lost)},
            facts={"after": committed},
            summary=f"bronze has the rows of version {version} as version {committed}",
        )

    def verify(self, record: RepairRecord) -> Outcome:
        """Compare the files of the version that was committed with those it went back to."""
        plan, uri, name = record.plan, self._uri, self.table.name
        committed, then = record.facts["after"], plan.basis["version"]
        after, back = (ledger_at(uri, version, table=name) for version in (committed, then))
        if after is None or back is None:
            return Outcome(summary="nothing is left to compare with")
        files = [
            {(file.path, file.deleted) for file in files_at(uri, version)} for version in (committed, then)
        ]
        problems = [] if files[0] == files[1] else ["its files are others"]
        lost = plan.basis["lost"]
        expected = {
            (source, p): lost.get(source, {}).get(str(p), (0, progress.end))[1]
            for source, partitions in back.sources.items()
            for p, progress in partitions.items()
        }
        problems += [
            f"{s}/{p} ends at {after.end(s, p)}" for (s, p), end in expected.items() if after.end(s, p) != end
        ]
        problem = problem_of_files(uri, committed)
        if problem is not None:
            problems.append(problem)
        if problems:
            raise RepairNotVerifiedError(
                operation=plan.operation, table=name, digest=plan.digest, problem=", ".join(problems)
            )
        return Outcome(counts={"files_verified": len(files[0])}, summary=f"bronze is what version {then} was")

    @property
    def _uri(self) -> str:
        return self.application.lake.bronze(self.table.name)

    def _require_live(self) -> tuple[TableState, Ledger]:
        """Return bronze and its newest ledger, whatever was changed by hand behind it."""
        state = look_into(self._uri, table=self.table.name)
        if state is None or state.ledger is None:
            raise _refused(self.table.name, "it has no bronze with a commit of ours")
        if state.is_lost:
            problem = "its newest ledger is lost; the next ingest makes it again from the rows"
            raise _refused(self.table.name, problem)
        return state, state.ledger

    def _problem_of(self, version: OwnVersion) -> str | None:
        """Say why bronze cannot go back to `version`; None where it can."""
        erased_at = newest_erasure(self.application.lake, self.table.name)
        if erased_at is not None and version.committed_at <= erased_at:
            return f"rows were erased at {erased_at.isoformat()}, behind version {version.version}"
        return problem_of_files(self._uri, version.version)

    def _plan_reading_again(self, live: TableState, ours: Ledger, back: Ledger) -> ReadAgain:
        try:
            after = went_back(ours, back, step=live.seq)
        except ValueError as exc:
            raise _refused(self.table.name, f"a source epoch was opened since ({exc})") from exc
        return plan_reading_again(ours, after, lambda: self.ask(self.application, ours))

    def _compare_rows(self, live: TableState, version: int) -> list[PartitionRows] | None:
        """Return how the rows change, by partition; None where files of now are gone."""
        if problem_of_files(self._uri, live.version) is not None:
            return None
        session = self.application.spark.isolated()
        return compare_rows(session, self._uri, now=live.version, then=version)

    def _warnings(self, live: TableState, again: ReadAgain) -> list[str]:
        lake, days = self.application.lake, self.application.pipeline.maintenance.vacuum_retention
        warnings = [
            f"The rows of now stay as version {live.version} for {days} (vacuum_retention): "
            "a rewind to it brings them back.",
        ]
        silver = look_into(lake.silver(self.table.name), table=self.table.name)
        if silver is not None and silver.ledger is not None:
            ahead = _count(_ranges_behind(again.ledger, silver.ledger))
            if ahead:
                warnings.append(
                    f"Silver has applied {ahead} offset(s) behind it: merges wait with BRONZE_BEHIND "
                    "until an ingest has read them again."
                )
        return warnings


def compare_rows(session: SparkSession, uri: str, *, now: int, then: int) -> list[PartitionRows]:
    """Compare the coordinates of two versions of a bronze table, by partition. One Spark job."""
    here = _coordinates(session, uri, now).alias("h")
    there = _coordinates(session, uri, then).alias("t")
    same = F.lit(True)
    for name in _PLACE:
        same &= F.col(f"h.{name}").eqNullSafe(F.col(f"t.{name}"))
    joined = here.join(there, same, "full")
    only_here, only_there = F.col("t.is_there").isNull(), F.col("h.is_there").isNull()
    is_other = ~only_here & ~only_there & ~F.col("h.attempt").eqNullSafe(F.col("t.attempt"))
    place = [F.coalesce(f"h.{name}", f"t.{name}").alias(name) for name in _PLACE[:2]]
    counts = [
        F.count_if(condition).alias(name)
        for name, condition in (("removed", only_here), ("added", only_there), ("changed", is_other))
    ]
    rows = joined.groupBy(*place).agg(*counts).orderBy(*_PLACE[:2]).collect()
    return [PartitionRows(**row.asDict()) for row in rows]


def _coordinates(session: SparkSession, uri: str, version: int) -> DataFrame:
    rows = with_topic_id(read_table(session, uri, version=version))
    return rows.select(*_PLACE, F.col(ATTEMPT.name).alias("attempt"), F.lit(True).alias("is_there"))


def _ranges_behind(before: Ledger, after: Ledger) -> Ranges:
    """Return the offsets that `after` has read and `before` has not."""
    ranges: dict[str, dict[int, tuple[int, int]]] = {}
    for source, partitions in after.sources.items():
        for partition, progress in partitions.items():
            end = before.end(source, partition)
            start = progress.floor if end is None else end
            if start < progress.end:
                ranges.setdefault(source, {})[partition] = (start, progress.end)
    return ranges


def _count(ranges: Ranges) -> int:
    return sum(until - start for spans in ranges.values() for start, until in spans.values())


def _count_rows(rows: Sequence[PartitionRows]) -> dict[str, int]:
    return {
        "rows_removed": sum(each.removed for each in rows),
        "rows_added": sum(each.added for each in rows),
        "rows_changed": sum(each.changed for each in rows),
    }


def _sentences(rows: list[PartitionRows] | None, again: ReadAgain) -> list[str]:
    """Return what happens to each partition that changes."""
    sentences = []
    if rows is None:
        sentences.append("files of the live table are gone: its rows cannot be counted")
    for each in rows or ():
        if each.removed or each.added or each.changed:
            counts = f"{each.removed} row(s) go, {each.added} come back, {each.changed} change"
            sentences.append(f"{each.topic}/{each.partition}: {counts}")
    for source, spans in again.ranges.items():
        sentences += [
            f"{topic_of(source)}/{p}: offsets {a}-{b - 1} are read again" for p, (a, b) in spans.items()
        ]
    for source, spans in again.lost.items():
        sentences += [
            f"{topic_of(source)}/{p}: Kafka has lost offsets {a}-{b - 1}, which are a gap from then on"
            for p, (a, b) in spans.items()
        ]
    return sentences


def _refused(table: str, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation=Job.REWIND, table=table, problem=problem)
