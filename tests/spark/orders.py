"""Records of a small table `orders (id, note)`, for laws that are not about one event's meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from chain import CLUSTER, PIPELINE, TOPIC_ID, Chain, table_of  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord, Writer, writers  # type: ignore[import-not-found]
from cdc_lakehouse.bronze.decided import NOTHING, Decided
from cdc_lakehouse.bronze.plan import DrainPlan, plan_drain
from cdc_lakehouse.bronze.planning import standing
from cdc_lakehouse.bronze.start import NO_START, Start
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import ForeignCommitError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.lake.transaction import commit, fenced_statement

ORDERS = table_of("orders")
TOPIC = ORDERS.topics[0]
SOURCE = f"{TOPIC}@{TOPIC_ID}"
EMPTY = Ledger(kind=Kind.BRONZE, pipeline=PIPELINE, table="orders", cluster_id=CLUSTER)
_CASE = Case.model_construct(
    name="orders",
    table=Table(
        key=("id",),
        columns={"id": "long", "note": "string"},
        columns_from_batch={2: {"id": "long", "note": "string", "priority": "int"}},
    ),
    events=(CaseEvent(at="0@0"), CaseEvent(at="0@1", batch=2)),
)
_WRITERS = writers(_CASE, first_id=100)
OLD, NEW = _WRITERS[1], _WRITERS[2]
"""Before and after the table got its column `priority`."""


def know(chain: Chain, writer: Writer = OLD) -> None:
    (key_id, key), (value_id, value) = writer.schemas.items()
    chain.registry.register(TOPIC, keys={key_id: key}, values={value_id: value})


def order(
    offset: int, number: int, *, op: str = "c", writer: Writer = OLD, at: int | None = None, **values: Any
) -> KafkaRecord:
    """The change at `offset`, or the one that was there sent again `at` a later one; a later offset is a
    later position."""
    row = None if op == "d" else {"id": number, "note": None, **values}
    return writer.record(
        CaseEvent(
            at=f"0@{offset if at is None else at}",
            op=op,
            key={"id": number},
            after=row,
            position=_position(offset),
        )
    )


def planned(
    chain: Chain,
    decided: Decided = NOTHING,
    *,
    held: tuple[int, int],
    topic_id: str = TOPIC_ID,
    start: Start = NO_START,
) -> DrainPlan:
    """As the job plans it, while Kafka holds these offsets."""
    ledger, healed, version = standing(
        chain.lake.bronze("orders"), EMPTY, decided=decided, session=lambda: chain.session
    )
    facts = ClusterFacts(CLUSTER, {TOPIC: TopicFacts(TOPIC, topic_id, {0: PartitionOffsets(*held)})})
    found = plan_drain(ledger, (TOPIC,), facts=facts, start=start, decided=decided, healed=healed)
    return replace(found, version=version)


def acknowledging(chain: Chain, *, fill_gaps: bool = False) -> Decided:
    """The decision that the refusal of a foreign commit asks to be pasted."""
    uri = chain.lake.bronze("orders")
    with pytest.raises(ForeignCommitError, match=r"; acknowledge_foreign: `orders=.+`$") as caught:
        standing(uri, EMPTY, decided=NOTHING, session=None)
    pasted = str(caught.value).split("`")[1]
    request = JobRequest(job=Job.BRONZE_INGEST, pipeline=PIPELINE, tables=(), acknowledge_foreign=(pasted,))
    return replace(Decided.about("orders", request), fill_gaps=fill_gaps)


def tombstone(offset: int, number: int) -> KafkaRecord:
    return OLD.record(CaseEvent(at=f"0@{offset}", key={"id": number}))


def truncate(offset: int) -> KafkaRecord:
    return OLD.record(CaseEvent(at=f"0@{offset}", op="t", position=_position(offset)))


def _position(offset: int) -> SourcePosition:
    lsn = 1000 + 10 * offset
    return SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1)


def notes(rows: list[dict[str, Any]]) -> dict[int, str]:
    """Silver's rows, or bronze's as (offset -> note)."""
    if rows and "offset" in rows[0]:
        return {row["offset"]: row["after"]["note"] for row in rows if row["after"]}
    return {row["id"]: row["note"] for row in rows}


def spoil(chain: Chain, statement: str, **facts: Any) -> None:
    """Leave silver as a release with a wrong fold would have: with a commit and a ledger of ours.

    `facts` are what that ledger says otherwise.
    """
    uri = chain.lake.silver("orders")
    state = read_state(uri, table="orders")
    assert state is not None
    assert state.ledger is not None
    ledger = state.ledger.advanced({}, attempt="20260101T000000Z-00000000", seen_through=None)
    ledger = replace(ledger, **facts)
    session = chain.engine.isolated()

    def execute() -> None:
        with fenced_statement(session, ledger):
            session.sql(statement.format(t=f"delta.`{uri}`"))

    commit(execute, uri=uri, ledger=ledger)
