"""Drain many small tables with one query: one pass over all their records, one commit for each table.

The pieces are those of a table alone (`bronze.ingest`). What stops a table before its commit leaves it where
its ledger stands: it is drained alone then, where the same is met, decided and told in the ordinary way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import UnfinishedError, each_table
from cdc_lakehouse.bronze.drain import drain, offsets_in
from cdc_lakehouse.bronze.ingest import TableIngest, TopicIds
from cdc_lakehouse.bronze.layout import together
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.bronze.progress import Progress
from cdc_lakehouse.bronze.read_again import unfit_timestamp
from cdc_lakehouse.bronze.sharing import MOST_RECORDS, SharedPlan
from cdc_lakehouse.bronze.sorted_udf import Sorted, write_files_by_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.lake.ledger import Ranges

logger = logging.getLogger(__name__)

_QUERIES = 3
"""One that a table ended is followed by one without that table, but not for ever."""


@dataclass(slots=True)
class SharedDrain:
    """Of the tables of one plan, in one attempt."""

    application: Application
    ingests: Mapping[str, TableIngest]
    """Table -> its part."""
    topic_ids: TopicIds
    bootstrap: str
    failed: dict[str, TableResult] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    """Tables whose rest is to be drained alone."""

    def run(self, *, kafka: Mapping[str, str]) -> dict[str, TableResult]:
        """Results of the tables that are done with; those that it lacks want a query of their own."""
        session = self.application.spark.isolated(small=True)
        self._each(self.ingests, lambda name: self.ingests[name].prepare(session))
        for number in range(_QUERIES):
            behind = self._behind()
            if not behind:
                break
            try:
                self._drain(session, behind, number=number, kafka=kafka)
            except Exception as exc:  # noqa: BLE001 - what is wrong, with one or all, their own queries tell
                blamed = self._blamed(exc, behind) or behind.keys()
                logger.warning(
                    "a query over many tables failed",
                    extra={"reason": type(exc).__name__, "drained_alone": sorted(blamed)},
                )
                self.left |= blamed
        self.left |= self._behind().keys()
        return {**self.failed, **{name: self.ingests[name].result() for name in self._going_on()}}

    def _drain(
        self,
        session: SparkSession,
        behind: Mapping[str, DrainPlan],
        *,
        number: int,
        kafka: Mapping[str, str],
    ) -> None:
        plan = SharedPlan(tuple(behind.values()))
        first, attempt = next(iter(behind)), self.application.attempt
        drain(
            session,
            plan,
            write=lambda batch, added: self._write(batch, plan.by_table(added)),
            checkpoint=self.application.lake.shared_checkpoint(first, attempt, number=number),
            kafka=kafka,
            max_offsets_per_trigger=MOST_RECORDS,
            layout=together(session.sparkContext.defaultParallelism),
            progress=Progress(plan.backlog),
        )

    def _write(self, batch: DataFrame, added: Mapping[str, Ranges]) -> None:
        """One batch, one commit for each table that it has records of."""
        mine = [name for name in self._going_on() if added.get(name)]
        destinations = [self.ingests[name].destination for name in mine]
        started = time.monotonic()
        found = write_files_by_table(batch, destinations, attempt=self.application.attempt)
        seconds = time.monotonic() - started
        # Asked for after the records were read.
        topic_ids = self.topic_ids([topic for each in destinations for topic in each.plans.topic_ids])
        self._set_aside(found)

        def commit(name: str) -> None:
            ingest = self.ingests[name]
            ingest.read_together(tables=len(mine), seconds=seconds)
            ingest.commit(batch.sparkSession, found.files.get(name, []), added[name], topic_ids=topic_ids)
            ingest.progress.committed(offsets_in(added[name]))

        self._each([name for name in mine if name not in self.left], commit)

    def _set_aside(self, found: Sorted) -> None:
        for name, reason in found.failures.items():
            logger.info("the table is drained alone", extra={"table": name, "reason": reason})
            self.left.add(name)

    def _blamed(self, exc: Exception, behind: Mapping[str, DrainPlan]) -> set[str]:
        """Tables of which it is plain that they ended the query; the others may have another one."""
        unfit = (unfit_timestamp(str(exc)) or "").rpartition("/")[0]
        try:
            now = self.topic_ids([topic.name for plan in behind.values() for topic in plan.topics])
        except LakehouseError:
            return set()
        return {
            name
            for name, plan in behind.items()
            if any(topic.name == unfit or now.get(topic.name) != topic.topic_id for topic in plan.topics)
        }

    def _behind(self) -> dict[str, DrainPlan]:
        """What is still to be read together."""
        rests = {name: self.ingests[name] for name in self._going_on()}
        return {name: ingest.rest for name, ingest in rests.items() if ingest.is_behind}

    def _going_on(self) -> list[str]:
        return [name for name in self.ingests if name not in self.failed and name not in self.left]

    def _each(self, names: Iterable[str], step: Callable[[str], None]) -> None:
        """The step of each table side by side; who fails in it has failed for good."""

        def guarded(table: Table) -> None:
            try:
                step(table.name)
            except Exception as exc:
                if (so_far := self.ingests[table.name].so_far()) is not None:
                    raise UnfinishedError(so_far) from exc
                raise

        tables = [self.ingests[name].table for name in names]
        for result in each_table(self.application, guarded, tables=tables, bootstrap=self.bootstrap):
            if result is not None:
                self.failed[result.table] = result
