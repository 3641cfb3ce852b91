"""Close cases that nobody will ever decode, and open them again: rows keep their bytes and their error.

What was closed stands in the row (`decode_error.closed`), so it outlives the ledger's document and no list
grows; who decided it stands in the ledger of that one commit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.signing import signed
from cdc_lakehouse.bronze.closing_plan import CLOSE, REOPEN, ClosingPlan, Coordinate, Meant, plan_closing
from cdc_lakehouse.bronze.decided import named_for
from cdc_lakehouse.bronze.in_place import Place, change_in_place, within_of
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.bronze_schema import ATTEMPT
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.coordinates import any_of, with_topic_id
from cdc_lakehouse.lake.ledger import Ledger, Sources
from cdc_lakehouse.lake.quarantine import CLOSED, ERROR, listed_cases, open_cases
from cdc_lakehouse.lake.state import TableState

logger = logging.getLogger(__name__)


def close_cases(application: Application, table: Table, state: TableState | None) -> TableResult:
    """Carry out what this run says of the table's cases; a second call finds it done and is idle."""
    started = time.monotonic()
    request, uri = application.request, application.lake.bronze(table.name)
    close, reopen = named_for(table.name, request.close_cases), named_for(table.name, request.reopen_cases)
    read: Sources = {} if state is None or state.ledger is None else state.ledger.sources
    plan = plan_closing(table.name, listed_cases(uri), read=read, close=close, reopen=reopen)
    asked_for = {
        name: {"asked": sorted(asked), "records": records}
        for name, asked, records in ((CLOSE, close, plan.closed), (REOPEN, reopen, plan.reopened))
        if asked
    }
    decisions = signed(asked_for, request)
    counts = {"closed_by_hand": plan.closed, "reopened": plan.reopened}
    result = TableResult(table=table.name, status=TableStatus.IDLE, counts=counts, decisions=decisions)
    is_done = not plan.closed + plan.reopened
    if request.dry_run or is_done or state is None or state.ledger is None:
        return result
    version = _commit(application, plan, state, state.ledger, decisions)
    logger.warning("cases closed by hand", extra={"decisions": decisions})
    return TableResult(
        table=table.name,
        status=TableStatus.ADVANCED,
        rows=plan.closed + plan.reopened,
        counts=counts,
        open_cases=open_cases(uri),
        seconds={"close": round(time.monotonic() - started, 3)},
        versions={"bronze": version},
        decisions=decisions,
    )


def _commit(
    application: Application, plan: ClosingPlan, state: TableState, held: Ledger, decisions: dict[str, Any]
) -> int:
    session, uri = application.spark.isolated(), application.lake.bronze(held.table)
    bronze = session.read.format("delta").option("versionAsOf", state.version).load(uri)
    rows = _marked(with_topic_id(bronze), plan, attempt=application.attempt)
    return change_in_place(
        session,
        rows,
        count=plan.closed + plan.reopened,
        within=within_of(_outermost(rows), held),
        lake=application.lake,
        held=held,
        attempt=application.attempt,
        decisions=decisions,
    )


def _marked(rows: DataFrame, plan: ClosingPlan, *, attempt: str) -> DataFrame:
    """Rows of the cases that change, as they are from now on."""
    open_, undecodable = waits(rows), F.col(ERROR).isNotNull()
    to_close, to_reopen = open_ & rows_meant(plan.close), undecodable & ~open_ & rows_meant(plan.reopen)
    by = F.when(open_, F.lit(attempt)).otherwise(F.lit(None).cast("string"))
    error = F.struct(F.col(f"{ERROR}.code"), F.col(f"{ERROR}.detail"), by.alias(CLOSED))
    changed = rows.where(to_close | to_reopen)
    return changed.withColumns({ERROR: error, ATTEMPT.name: F.lit(attempt)})


def rows_meant(meant: Meant) -> Column:
    """Return the same as `Meant.has`, of rows with a `topic_id`."""
    code = F.col(f"{ERROR}.code").isin(sorted(meant.codes))
    return code | any_of(map(_is_at, meant.coordinates))


def _is_at(place: Coordinate) -> Column:
    is_at = (F.col("topic") == place.topic) & (F.col("partition") == place.partition)
    is_at &= F.col("offset") == place.offset
    return is_at if place.topic_id is None else is_at & F.col("topic_id").eqNullSafe(place.topic_id)


def _outermost(rows: DataFrame) -> Iterator[Place]:
    """The first and the last row of each partition."""
    found = rows.groupBy("topic", "partition", "topic_id").agg(
        F.min("offset").alias("first"), F.max("offset").alias("last")
    )
    for row in found.collect():
        for offset in (row["first"], row["last"]):
            yield row["topic"], row["partition"], offset, row["topic_id"]
