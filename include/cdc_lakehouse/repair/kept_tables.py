"""End the reading of a table that its source has dropped, and keep what it holds: `stop_reading` as a repair.

The ledger of bronze says which topics are not missed any more; that is one commit without rows.
"""

from __future__ import annotations

from dataclasses import replace

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.signing import signed
from cdc_lakehouse.bronze.ending import end_reading, is_reading_ended, names_of_ending
from cdc_lakehouse.bronze.losses import having_seen
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import DecisionOutdatedError, PlanChangedError, RepairRefusedError
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.file_commit import commit_files
from cdc_lakehouse.lake.lag import read_unread
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import begun_repairs

_DECISION = "stop_reading"


def ending_plan(application: Application, table: Table, facts: ClusterFacts) -> TablePlan:
    """Return the plan that ends the reading. Raise where a topic of the table still brings records."""
    lake = application.lake
    state, stated = _bronze_of(lake, table)
    ledger = _with_unread(lake, table, stated, facts=facts)
    names = names_of_ending(ledger, facts)
    if not names and not is_reading_ended(ledger):
        problem = "a topic of it brings records; to stop reading it, take the table out of the pipeline file"
        raise _refused(table, problem)
    after, decision = end_reading(ledger, facts, named=names or None)
    ended = decision.get(_DECISION, {}).get("ended", [])
    left = decision.get(_DECISION, {}).get("left", {})
    offsets = sum(until - start for spans in left.values() for start, until in spans.values())
    return TablePlan(
        operation=Job.RETIRE,
        pipeline=application.pipeline.name,
        table=table.name,
        options={"what": "keep"},
        basis={
            "repairs": begun_repairs(lake, table.name),
            "names": sorted(names),
            "life": state.life,
        },
        effects={"topics_ended": len(ended), "offsets_given_up": offsets},
        summary=f"no run misses {', '.join(ended)} any more" if ended else "its reading has ended before",
        details=("All that the table holds stays. If a topic is there again, it is read again.",),
        is_needed=after is not ledger,
    )


def state_ending(application: Application, table: Table, plan: TablePlan, facts: ClusterFacts) -> Outcome:
    """State in bronze's ledger that the reading has ended; a second call finds it done."""
    state, stated = _bronze_of(application.lake, table)
    ledger = _with_unread(application.lake, table, stated, facts=facts)
    try:
        after, decision = end_reading(ledger, facts, named=frozenset(plan.basis["names"]) or None)
    except DecisionOutdatedError as exc:
        raise PlanChangedError(
            operation=plan.operation, table=plan.table, digest=plan.digest, problem=str(exc)
        ) from exc
    if not decision:
        return Outcome(summary="its reading has ended before")
    decisions = signed(decision, application.request) | {
        "repair": {"operation": plan.operation, "plan": plan.digest}
    }
    # What the table could claim before is to be proved anew.
    after = replace(
        after,
        seq=stated.seq + 1,
        attempt=application.attempt,
        added={},
        decisions=decisions,
        valid_through=None,
    )
    session, uri = application.spark.isolated(), application.lake.bronze(table.name)
    schema = schema_of(session, uri)
    if schema is None:
        raise _refused(table, "its bronze is gone")
    version = commit_files(session, uri, [], before=stated, after=after, schema=schema, known=state.version)
    ended = decision[_DECISION]["ended"]
    return Outcome(
        counts={"topics_ended": len(ended)},
        facts={"after": {"bronze": version}},
        summary=f"no run misses {', '.join(ended)} any more",
    )


def is_ended(lake: Lake, table: Table) -> bool:
    """Return whether bronze's ledger says of every topic that a person ended its reading."""
    state = read_state(lake.bronze(table.name), table=table.name)
    return state is not None and state.ledger is not None and bool(state.ledger.ended)


def _bronze_of(lake: Lake, table: Table) -> tuple[TableState, Ledger]:
    state = read_state(lake.bronze(table.name), table=table.name)
    if state is None or state.ledger is None:
        raise _refused(table, "it was never read")
    return state, state.ledger


def _with_unread(lake: Lake, table: Table, ledger: Ledger, *, facts: ClusterFacts) -> Ledger:
    """Return the ledger that knows what an ingest that failed saw of topics that are gone since."""
    remembered = read_unread(lake.unread(table.group)).get(table.name, {})
    return having_seen(ledger, remembered, facts=facts)


def _refused(table: Table, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation=Job.RETIRE, table=table.name, problem=problem)
