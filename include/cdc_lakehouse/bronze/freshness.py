"""The time for which changes of the source have been missing from a table, and the promise about it.

The age of *valid-through* says how old a table may be at most. A promise is broken by what can be shown: the
source's log was at a place at a known moment, and the table does not have everything up to there. A pause
of the DAG alone shows nothing, and a source without writes does not age.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from cdc_lakehouse.bronze.epochs import EPOCHS_OPENED
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.connect.connectors import NOBODY_ASKED, ConnectorState
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.errors import ConfigError, LakehouseError, NotFreshError
from cdc_lakehouse.lake.claims import Withheld
from cdc_lakehouse.lake.confirmations import lacking_since
from cdc_lakehouse.lake.instants import age_in_words


@dataclass(frozen=True, slots=True)
class Arrival:
    """Facts that one run has about the way of a table's changes from the source to Kafka."""

    now: datetime
    """The time by the source's clock; by that of this machine where the source did not answer."""
    moments: tuple[Moment, ...]
    """Places of the source's log at known times, oldest first."""
    source: LogPosition | None = None
    """The end of the source's log; None where the source did not answer."""
    committed: LogPosition | None = None
    """The position that the connector has committed; None where it is not known."""
    is_at_source: bool = True
    """The source has the tables that the topics are named after."""
    unjudged: str = ""
    """Why positions of this source say nothing about the table; empty where they do."""
    has_ended: bool = False
    """A person ended the reading of the table: it gets nothing new and lacks nothing."""
    connector: ConnectorState = NOBODY_ASKED
    refusal: LakehouseError | None = None
    """The error with which the question to source or connectors failed."""


def with_freshness(result: TableResult, table: Table, arrival: Arrival) -> TableResult:
    """Return the result with the facts of its freshness, and red where the promise of the table is broken.

    Another error of the table stays: it comes first. Call it on what the drain achieved.
    """
    position = _find_position(result, arrival)
    is_judged = not (arrival.has_ended or arrival.unjudged)
    since = lacking_since(arrival.moments, position) if is_judged else None
    facts = _describe_arrival(table, arrival, since=since)
    broken = None if result.error is not None else _broken_promise(table, arrival, since=since)
    error = result.error if broken is None else broken.as_table_error()
    return replace(result, freshness=facts, error=error)


def _find_position(result: TableResult, arrival: Arrival) -> LogPosition | None:
    """Return what the table has; where it claims nothing for another reason, what the connector has sent.

    A source epoch that the records of this run opened is such a reason: the look of the next run is the first
    that can confirm a claim for it. A table that was never confirmed has nothing.
    """
    if not arrival.is_at_source:
        return arrival.committed
    if result.valid_position is not None:
        return LogPosition.from_text(result.valid_position)
    is_confirmed_later = result.withheld != Withheld.NOT_CONFIRMED or EPOCHS_OPENED in result.decisions
    return arrival.committed if is_confirmed_later else None


def _describe_arrival(table: Table, arrival: Arrival, *, since: datetime | None) -> Mapping[str, Any]:
    source, committed = arrival.source, None if arrival.unjudged else arrival.committed
    behind = None if source is None or committed is None else max(0, source.number - committed.number)
    facts = {
        "connector": arrival.connector.sentence,
        "connector_runs": arrival.connector.runs,
        "at_source": arrival.is_at_source,
        "source_position": None if source is None else str(source),
        "committed_position": None if committed is None else str(committed),
        "behind_bytes": behind,
        "withheld": arrival.unjudged or None,
        "lacks_since": None if since is None else since.isoformat(),
        "stale_seconds": None if since is None else _age_of(arrival, since),
        "fresh_within": table.fresh_within,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _broken_promise(table: Table, arrival: Arrival, *, since: datetime | None) -> LakehouseError | None:
    if table.fresh_within is None or arrival.has_ended:
        return None
    if isinstance(arrival.refusal, ConfigError):
        return arrival.refusal
    if since is None or _age_of(arrival, since) <= duration(table.fresh_within).total_seconds():
        return None
    refusal = "" if arrival.refusal is None else f"; {arrival.refusal}"
    return NotFreshError(
        table=table.name,
        since=f"{since:%Y-%m-%d %H:%M:%S} UTC",
        age=age_in_words(_age_of(arrival, since)),
        promise=table.fresh_within,
        connector=f"{arrival.connector.sentence}{refusal}",
    )


def _age_of(arrival: Arrival, since: datetime) -> float:
    return max(0.0, round((arrival.now - since).total_seconds(), 1))
