"""Rows that a snapshot of the whole table did not find are swept from silver and stay away."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chain import KAFKA_TIME, Chain, table_of  # type: ignore[import-not-found]
from orders import OLD, know, notes, order  # type: ignore[import-not-found]
from repairs import carry_out, make_plan  # type: ignore[import-not-found]

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.contract import Job, TableResult, TableStatus
from cdc_lakehouse.errors import DeletesLimitError
from cdc_lakehouse.lake.applied import Sweep
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.repair.rebuild import Rebuild
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.table_merge import merge_table
from cdc_lakehouse.verification.columns import SourceColumn, plan_columns
from cdc_lakehouse.verification.unsent import find_unsent, keys_only

ORDERS = table_of("orders", history=True)
SOFT = table_of("orders", deletes="soft")
SWEEP = Sweep(Place((0, 1, 1045, 0, 0, 0, 0)), "2026-01-02T04:00:00+00:00", "a1b2c3")
"""Behind the events up to offset 4, the commit of which is at 1040."""
BATCH = [
    order(0, 1, note="unchanged"),
    order(1, 2, note="ghost"),
    order(2, 3, note="old value"),
    order(3, 4, note="ghost that comes again"),
    order(4, 5, note="told before"),
]


def read_again(offset: int, number: int, note: str) -> KafkaRecord:
    """A row of the incremental snapshot, read behind the sweep."""
    place = SourcePosition(snapshot="incremental", sequence=(1050, 1060 + offset))
    after = {"id": number, "note": note}
    return OLD.record(CaseEvent(at=f"0@{offset}", op="r", key={"id": number}, after=after, position=place))


def untold_update(offset: int, number: int) -> KafkaRecord:
    """An update that leaves a large value alone: the snapshot yields to it."""
    place = SourcePosition(sequence=(1100, 1110), lsn=1110, tx=1110, order=1)
    event = CaseEvent(
        at=f"0@{offset}",
        op="u",
        key={"id": number},
        after={"id": number, "note": "__debezium_unavailable_value"},
        position=place,
    )
    return OLD.record(event)


SNAPSHOT = [read_again(5, 1, "unchanged"), read_again(6, 3, "new value"), untold_update(7, 5)]


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("sweeps").as_uri())
    know(chain)
    for records in (BATCH, SNAPSHOT):
        chain.ingest(ORDERS, records)
        chain.merge(ORDERS)
    return chain


@pytest.fixture
def merged(template: Chain, tmp_path: Path) -> Chain:
    copy: Chain = template.copied_to(tmp_path)
    return copy


def swept(chain: Chain, table: Any = ORDERS, **limit: float) -> TableResult:
    chosen = table.model_copy(update={"deletes_limit": table.deletes_limit.model_copy(update=limit)})
    application = chain.application(chosen, job=Job.RESYNC)
    task = look_at(application, chosen, sweeps=(SWEEP,))
    return merge_table(application, task) if isinstance(task, MergeTask) else task


def versions(chain: Chain) -> list[tuple[int, str, bool, datetime | None]]:
    """Return id, note, whether it is open, and when it ended, of each version."""
    rows = [
        (
            row["id"],
            row["note"],
            row["_cdc_to"] is None,
            None if row["_cdc_to"] is None else row["_cdc_to_ts"],
        )
        for row in chain.history(ORDERS)
    ]
    return sorted(rows, key=str)


KEPT = {1: "unchanged", 3: "new value", 5: "told before"}


def test_rows_that_the_snapshot_did_not_find_are_swept_once_and_their_versions_end(merged: Chain):
    before = notes(merged.silver(ORDERS))
    first, second = swept(merged), swept(merged)
    state = read_state(merged.lake.silver("orders"), table="orders")

    assert before == {**KEPT, 2: "ghost", 4: "ghost that comes again"}
    assert notes(merged.silver(ORDERS)) == KEPT
    assert (first.counts["rows_deleted"], first.decisions) == (2, {"resync": ["a1b2c3"]})
    assert second.status is TableStatus.IDLE
    assert state is not None
    assert state.ledger is not None
    assert state.ledger.applied.sweeps == (SWEEP,)
    told = [(number, note, is_open) for number, note, is_open, _ in versions(merged)]
    assert told == [
        (1, "unchanged", True),
        (2, "ghost", False),
        (3, "new value", True),
        (3, "old value", False),
        (4, "ghost that comes again", False),
        (5, "told before", False),
        (5, "told before", True),
    ]
    assert {f"{end:%Y-%m-%d %H:%M}" for number, _, _, end in versions(merged) if number in (2, 4)} == {
        "2026-01-02 04:00"
    }


def test_a_swept_row_stays_away_until_the_source_creates_it_again(merged: Chain):
    swept(merged)
    merged.ingest(ORDERS, [order(1, 2, note="ghost", at=8)])
    sent_again = merged.merge(ORDERS)
    after_old_event = notes(merged.silver(ORDERS))
    minute = Interval(KAFKA_TIME - timedelta(seconds=30), KAFKA_TIME + timedelta(seconds=30))
    recomputed = merged.merge(ORDERS, interval=minute)
    after_recompute = notes(merged.silver(ORDERS))
    merged.ingest(ORDERS, [order(90, 4, note="created again", at=9)])
    merged.merge(ORDERS)

    assert (sent_again.error, after_old_event) == (None, KEPT)
    assert (recomputed.error, after_recompute) == (None, KEPT)
    assert notes(merged.silver(ORDERS)) == {**KEPT, 4: "created again"}
    assert [told for told in versions(merged) if told[0] == 2 and told[2]] == []


def test_a_rebuild_makes_the_same_rows_and_versions_as_the_swept_table(merged: Chain):
    swept(merged)
    merged.ingest(ORDERS, [order(90, 4, note="created again", at=8)])
    merged.merge(ORDERS)
    right, right_versions = notes(merged.silver(ORDERS)), versions(merged)

    plan = make_plan(merged, ORDERS, Rebuild())
    merged.sql("UPDATE {t} SET note = 'by hand' WHERE id = 1", merged.lake.silver("orders"))
    damaged = make_plan(merged, ORDERS, Rebuild())
    done = carry_out(merged, ORDERS, Rebuild(), damaged)

    assert (plan.status, {name: n for name, n in plan.counts.items() if n and "versions" not in name}) == (
        TableStatus.IDLE,
        {},
    )
    assert (done.error, notes(merged.silver(ORDERS)), versions(merged)) == (None, right, right_versions)


def test_a_sweep_is_stopped_by_the_limit_like_any_removal(merged: Chain):
    with pytest.raises(DeletesLimitError) as caught:
        swept(merged, rows=1, share=0.1)

    assert "a snapshot by `resync` that lacks them" in str(caught.value)
    assert sorted(notes(merged.silver(ORDERS))) == [1, 2, 3, 4, 5]


def test_a_table_that_keeps_deleted_rows_marks_swept_ones(chain: Chain):
    know(chain)
    chain.ingest(SOFT, [*BATCH, *SNAPSHOT])
    chain.merge(SOFT)
    swept(chain, SOFT)

    assert {row["id"]: row["_cdc_deleted"] for row in chain.silver(SOFT)} == {
        1: False,
        2: True,
        3: False,
        4: True,
        5: False,
    }


def test_rows_that_stand_before_the_sweep_are_found_with_their_keys(merged: Chain):
    silver = newest_snapshot(merged.lake.silver("orders"))
    assert silver is not None
    columns = [SourceColumn("id", "int8"), SourceColumn("note", "text")]
    plan = keys_only(plan_columns(columns, silver.schema, key=("id",), dropped=()))

    unsent = find_unsent(plan, silver, before=SWEEP.place, most=10)
    nothing = find_unsent(plan, silver, before=Place((0, 0, 0, 0, 0, 0, 0)), most=10)

    assert (unsent.rows, len(unsent.keys), len(unsent.examples)) == (2, 2, 2)
    assert (nothing.rows, nothing.keys) == (0, frozenset())
