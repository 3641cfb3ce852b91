"""A resync that is killed between any two of its steps: the next try goes on, by one signal for each plan.

Source and table of signals are a real PostgreSQL. What the connector sends is made here: a real one is
killed beside in `tests/stack/test_resync.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from orders import notes  # type: ignore[import-not-found]
from repairs import carry_out, error_of, make_plan  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.case_file import Table as CaseTable
from cases.encoding import KafkaRecord, writers  # type: ignore[import-not-found]
from cdc_lakehouse.contract import ENV_CONNECTION_SOURCE, ExitCode, TableResult, TableStatus
from cdc_lakehouse.database.signal_table import SignalTable
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.repair import resync
from cdc_lakehouse.repair.records import RepairRecord, read_record
from cdc_lakehouse.repair.resync import Resync
from local_stack import LocalStack, RunningStack
from local_stack.postgres import SHOP, SUPERUSER

ORDERS = table_of("orders", "cases.public.orders", history=True)
TOPIC = ORDERS.topics[0]
RESYNC = Resync()
_CASE = Case.model_construct(
    name="public.orders",
    table=CaseTable(key=("id",), columns={"id": "long", "note": "string"}),
    events=(CaseEvent(at="0@0"),),
)
WRITER = writers(_CASE, first_id=300)[1]
FAR = 2**50
"""A place of the source's log that it never reaches here: the snapshot comes behind every signal."""


def event(offset: int, op: str, number: int, note: str, position: SourcePosition) -> KafkaRecord:
    after = {"id": number, "note": note}
    return WRITER.record(
        CaseEvent(at=f"0@{offset}", op=op, key={"id": number}, after=after, position=position)
    )


def create(offset: int, number: int, note: str, *, lsn: int) -> KafkaRecord:
    return event(
        offset, "c", number, note, SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1)
    )


def read_again(offset: int, number: int, note: str) -> KafkaRecord:
    place = SourcePosition(snapshot="incremental", sequence=(FAR, FAR + offset))
    return event(offset, "r", number, note, place)


BEFORE = [
    create(0, 1, "unchanged", lsn=1000),
    create(1, 2, "ghost", lsn=1010),
    create(2, 3, "old value", lsn=1020),
]
SNAPSHOT = [read_again(3, 1, "unchanged"), read_again(4, 3, "new value"), read_again(5, 4, "never sent")]
SINCE = create(6, 5, "written since", lsn=FAR + 100)
KAFKA = [*BEFORE, *SNAPSHOT, SINCE]
GHOST = {1: "unchanged", 2: "ghost", 3: "old value"}
READ_AGAIN = {1: "unchanged", 2: "ghost", 3: "new value", 4: "never sent"}
DONE = {1: "unchanged", 3: "new value", 4: "never sent", 5: "written since"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    with LocalStack(tmp_path_factory.mktemp("source")).running("postgres", airflow=False) as stack:
        yield stack


@pytest.fixture
def connection(source: RunningStack, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection[Any]]:
    """The source: its orders, and an empty table of signals."""
    document = {
        "host": "127.0.0.1",
        "port": source.postgres.site.ports["postgres"],
        "login": SUPERUSER,
        "password": source.postgres.site.secrets.postgres,
        "extra": {"database": SHOP, "offsets_topic": "connect-offsets"},
    }
    monkeypatch.setenv(ENV_CONNECTION_SOURCE, json.dumps(document))
    with source.postgres.connect(SHOP) as connection:
        connection.autocommit = True
        for statement in (
            "DROP TABLE IF EXISTS public.orders, public.debezium_signal CASCADE",
            "CREATE TABLE public.orders (id bigint PRIMARY KEY, note text)",
            "INSERT INTO public.orders VALUES (1, 'unchanged'), (3, 'new value'), (4, 'never sent')",
            "CREATE TABLE public.debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32), "
            "data varchar(2048))",
        ):
            connection.execute(statement.encode())
        yield connection


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("resync").as_uri())
    chain.registry.register(TOPIC, keys=WRITER.keys, values=WRITER.values)
    chain.ingest(ORDERS, BEFORE)
    chain.merge(ORDERS)
    return chain


def read_on(chain: Chain, *, until: int) -> None:
    """Ingest what Kafka has up to the offset `until` and bronze does not."""
    state = read_state(chain.lake.bronze("orders"), table="orders")
    assert state is not None
    assert state.ledger is not None
    (end,) = (partitions[0].end for partitions in state.ledger.sources.values())
    if KAFKA[end:until]:
        chain.ingest(ORDERS, KAFKA[end:until])


@pytest.fixture
def merged(template: Chain, tmp_path: Path, connection: Any, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """Silver with a ghost and an old value, beside a connector that answers each signal at once."""
    chain: Chain = template.copied_to(tmp_path)

    def end_of_kafka(*_facts: object) -> None:
        rows = connection.execute("SELECT count(*) FROM public.debezium_signal").fetchone()
        read_on(chain, until=len(KAFKA) if rows[0] else len(BEFORE))

    monkeypatch.setattr(resync, "_require_connector", lambda *_facts, **_more: None)
    monkeypatch.setattr(resync, "wait_for_end", lambda *_facts, **_more: None)
    monkeypatch.setattr(resync, "read_to_end", end_of_kafka)
    return chain


def die(*_facts: object, **_more: object) -> Any:
    raise SupersededError(table="orders", seq=0, attempt="killed")


def before(_real: Callable[..., Any]) -> Callable[..., Any]:
    """A step that is killed before it begins."""
    return die


def behind(real: Callable[..., Any]) -> Callable[..., Any]:
    """A step that is killed when it has ended."""

    def killed(*facts: Any, **more: Any) -> Any:
        real(*facts, **more)
        die()

    return killed


def signals(connection: Any) -> list[str]:
    return [row[0] for row in connection.execute("SELECT id FROM public.debezium_signal").fetchall()]


PLACES = [
    (SignalTable, "send", before, [], GHOST),
    (SignalTable, "send", behind, ["sent"], GHOST),
    (resync, "write_record", before, ["sent"], GHOST),
    (resync, "wait_for_end", before, ["sent"], GHOST),
    (resync, "read_to_end", behind, ["sent"], GHOST),
    (resync, "_merge", behind, ["sent"], {**READ_AGAIN, 5: "written since"}),
    (resync, "merge_table", before, ["sent"], GHOST),
    (resync, "_sweep_silver", before, ["sent"], {**READ_AGAIN, 5: "written since"}),
    (resync, "_sweep_silver", behind, ["sent"], DONE),
    (RepairRecord, "with_result", before, ["sent"], DONE),
]


@pytest.mark.parametrize(
    ("place", "name", "when", "sent", "left"),
    PLACES,
    ids=[f"{when.__name__} {name}" for _, name, when, _, _ in PLACES],
)
def test_a_resync_that_is_killed_is_finished_behind_runs_of_the_schedule_by_one_signal(
    merged: Chain,
    connection: Any,
    place: Any,
    name: str,
    when: Callable[..., Any],
    sent: list[str],
    left: dict[int, str],
    monkeypatch: pytest.MonkeyPatch,
):
    plan = make_plan(merged, ORDERS, RESYNC)
    connection.execute("INSERT INTO public.orders VALUES (5, 'written since')")
    with monkeypatch.context() as patch:
        patch.setattr(place, name, when(getattr(place, name)))
        killed = carry_out(merged, ORDERS, RESYNC, plan)
    signals_then, silver_then = signals(connection), notes(merged.silver(ORDERS))
    read_on(merged, until=len(BEFORE) + 2 * len(signals_then))  # by the schedule, in the middle
    merged.merge(ORDERS)
    finished, again = carry_out(merged, ORDERS, RESYNC, plan), carry_out(merged, ORDERS, RESYNC, plan)

    signal = f"resync-{plan.plan['digest']}"
    assert {name: count for name, count in plan.counts.items() if count} == {
        "rows_sent": 3,
        "rows_added": 1,
        "rows_changed": 1,
        "rows_removed": 1,
    }
    assert error_of(killed).exit_code is ExitCode.RETRY
    assert (signals_then, silver_then) == ([signal for _ in sent], left)
    assert (finished.status, again.status) == (TableStatus.REPAIRED, TableStatus.IDLE)
    assert notes(merged.silver(ORDERS)) == DONE
    assert signals(connection) == [signal]
    assert sweeps(merged) == [plan.plan["digest"]]
    assert "signalled" in read_record(merged.lake, "orders", plan.plan["digest"]).facts
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def sweeps(chain: Chain) -> list[str]:
    state = read_state(chain.lake.silver("orders"), table="orders")
    assert state is not None
    assert state.ledger is not None
    return [sweep.plan for sweep in state.ledger.applied.sweeps]


def test_a_resync_that_a_newer_plan_replaced_sweeps_nothing(
    merged: Chain, connection: Any, monkeypatch: pytest.MonkeyPatch
):
    plan = make_plan(merged, ORDERS, RESYNC)
    with monkeypatch.context() as patch:
        patch.setattr(resync, "wait_for_end", die)
        carry_out(merged, ORDERS, RESYNC, plan)
    newer = make_plan(merged, ORDERS, RESYNC)
    connection.execute("INSERT INTO public.orders VALUES (5, 'written since')")
    done: TableResult = carry_out(merged, ORDERS, RESYNC, newer)
    too_late = carry_out(merged, ORDERS, RESYNC, plan)

    assert (done.status, error_of(too_late).code) == (TableStatus.REPAIRED, "PLAN_CHANGED")
    assert sorted(signals(connection)) == sorted(f"resync-{each.plan['digest']}" for each in (plan, newer))
    assert (notes(merged.silver(ORDERS)), sweeps(merged)) == (DONE, [newer.plan["digest"]])
