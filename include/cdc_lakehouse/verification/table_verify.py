"""Verify one table: read silver, then the source, compare, judge, remember what stays open."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from cdc_lakehouse.application.per_table import UnfinishedError
from cdc_lakehouse.config.models import OutOfRange, Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.errors import ColumnsUntoldError, DataError, SilverDiffersError, SourceTableMissingError
from cdc_lakehouse.lake.ends import has_read, is_of_the_past
from cdc_lakehouse.lake.ledger import ending_decision, has_ended
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.verification.columns import ColumnPlan, KeyNotComparedError, plan_columns
from cdc_lakehouse.verification.compare import Comparison, compare
from cdc_lakehouse.verification.deliveries import AskEnds, Deliveries
from cdc_lakehouse.verification.differences import Key
from cdc_lakehouse.verification.looks import read_looks, write_looks
from cdc_lakehouse.verification.sides import silver_batches, source_batch
from cdc_lakehouse.verification.source import Relation, SourceSnapshot, snapshot_of
from cdc_lakehouse.verification.subject import NotComparedError, Subject, new_columns, subject_of
from cdc_lakehouse.verification.told import (
    Verified,
    counts_of,
    kinds_in_words,
    lacks_in_words,
    report_of,
    unsent_columns,
)
from cdc_lakehouse.verification.verdict import Look, OpenKey, Verdict, judge


@dataclass(frozen=True, slots=True)
class Verification:
    """Where a table is, and whom to ask."""

    lake: Lake
    database: Database
    ends: AskEnds
    dry_run: bool = False

    def run(self, table: Table) -> TableResult:
        """Reads both sides, writes what it leaves open. Raises with the result where silver is wrong."""
        started = time.monotonic()
        try:
            subject = subject_of(self.lake, table)
            with snapshot_of(self.database) as snapshot:
                found = self._compared(table, subject, snapshot)
        except (NotComparedError, KeyNotComparedError) as reason:
            told = {"verdict": Verdict.NOT_COMPARED, "why": str(reason)}
            return TableResult(table=table.name, status=TableStatus.VERIFIED, verification=told)
        self._remember(table, found)
        result = TableResult(
            table=table.name,
            status=TableStatus.VERIFIED,
            counts=counts_of(found),
            open_cases=subject.open_cases,
            seen_through=subject.ledger.seen_through,
            seconds={"all": round(time.monotonic() - started, 3)},
            versions={"silver": subject.silver.version},
            verification=report_of(found),
        )
        if found.judgement.wrong:
            raise UnfinishedError(result) from self._explain_difference(table, found)
        return result

    def _explain_difference(self, table: Table, verified: Verified) -> DataError:
        """Return the error: `COLUMNS_UNTOLD` where all rows differ only in columns that no event has sent."""
        new = new_columns(self.lake, table.name)
        explained = [unsent_columns(difference, new) for difference in verified.judgement.wrong]
        if any(columns is None for columns in explained):
            return _differs(table, verified)
        names = sorted({name for columns in explained for name in columns or ()})
        return ColumnsUntoldError(
            table=table.name,
            count=len(explained),
            columns=", ".join(new[name].words for name in names),
        )

    def _compared(self, table: Table, subject: Subject, snapshot: SourceSnapshot) -> Verified:
        relation = snapshot.relation(subject.schema, subject.relation)
        if relation is None:
            raise self._missing(table, relation=f"{subject.schema}.{subject.relation}")
        plan = plan_columns(
            snapshot.columns(relation),
            subject.silver.schema,
            key=subject.key,
            dropped=table.drop_columns,
            choice=table.columns,
        )
        comparison = compare_rows(table, subject, snapshot, relation=relation, plan=plan)
        if table.filter is not None:
            plan, comparison = plan.of_part_of_the_rows(), comparison.of_rows_in_silver()
        now, earlier = Look(snapshot.mark), self._earlier(table, subject, mark=snapshot.mark)
        judgement = judge(
            comparison.found, earlier, now, has_applied=lambda look: has_read(subject.ledger, look.ends)
        )
        return Verified(subject, str(relation), now, plan, comparison, judgement)

    def _missing(self, table: Table, *, relation: str) -> Exception:
        """Return the error for a table that is gone; it is no failure where a person ended its reading."""
        bronze = read_state(self.lake.bronze(table.name), table=table.name)
        ledger = None if bronze is None else bronze.ledger
        if ledger is not None and has_ended(ledger):
            return NotComparedError("it is gone at the source, and its reading was ended (stop_reading)")
        return SourceTableMissingError(table=table.name, relation=relation, decision=ending_decision(ledger))

    def _earlier(self, table: Table, subject: Subject, *, mark: LogPosition) -> dict[Key, OpenKey]:
        known = read_looks(self.lake.looks(table.name), columns=subject.key)
        told = self._deliveries.by_observation(known.values(), table, subject, mark=mark)
        return {each.key: each for each in told if not is_of_the_past(subject.ledger, each.since.ends)}

    def _remember(self, table: Table, found: Verified) -> None:
        if self.dry_run:
            return
        keys = self._deliveries.by_slot(found.judgement.keys, table, found.subject)
        write_looks(self.lake.looks(table.name), keys, columns=found.subject.key)

    @property
    def _deliveries(self) -> Deliveries:
        return Deliveries(self.lake, self.database, self.ends)


def compare_rows(
    table: Table, subject: Subject, snapshot: SourceSnapshot, *, relation: Relation, plan: ColumnPlan
) -> Comparison:
    """Compare all rows of both sides; nothing is written."""
    as_cells = partial(source_batch, plan, beyond_is_null=table.out_of_range is OutOfRange.AS_NULL)
    names = [column.source for column in plan.compared]
    return compare(
        lambda: map(as_cells, snapshot.rows(relation, names)),
        lambda: silver_batches(plan, subject.silver),
        columns=tuple(column.silver for column in plan.compared),
        keys=plan.keys,
        about=subject.silver.row_count or 0,
    )


def _differs(table: Table, found: Verified) -> SilverDiffersError:
    wrong = found.judgement.wrong
    return SilverDiffersError(
        table=table.name,
        mark=str(max(found.judgement.marks)),
        count=len(wrong),
        kinds=kinds_in_words(wrong),
        known=lacks_in_words(found.subject.lacks()),
    )
