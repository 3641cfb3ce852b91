"""Somebody changes silver between the look at it and the commit of the merge: nothing is swallowed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import ORDERS, know, notes, order  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import ForeignCommitError, SupersededError
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.table_merge import merge_table
from cdc_lakehouse.silver.writing import merge, replace_rows

SOFT = table_of("orders", deletes="soft")
APPENDED = table_of("orders", mode="append")
WAYS = {"by place": (ORDERS, replace_rows), "soft": (SOFT, merge), "append": (APPENDED, merge)}
"""Tables that are written each in its own way, and the room that commits it."""
READ_STATE = "cdc_lakehouse.silver.look.read_state"
EACH_WAY = pytest.mark.parametrize("way", WAYS)
BY_HAND = pytest.mark.parametrize(
    ("statement", "operation"),
    [("DELETE FROM {t} WHERE id = 1", "DELETE"), ("RESTORE {t} TO VERSION AS OF 1", "RESTORE")],
)


@pytest.fixture(scope="module")
def templates(engine, tmp_path_factory) -> dict[str, Chain]:
    return {
        way: stocked(Chain(engine, root=tmp_path_factory.mktemp(way.replace(" ", "_")).as_uri()), table)
        for way, (table, _) in WAYS.items()
    }


def stocked(chain: Chain, table: Table) -> Chain:
    know(chain)
    for records in ([order(0, 1, note="one")], [order(1, 2, note="two")]):
        chain.ingest(table, records)
        chain.merge(table)
    chain.ingest(table, [order(2, 3, note="three")])
    return chain


@pytest.fixture
def behind(templates, way: str, tmp_path: Path) -> Chain:
    """Silver has two of three steps."""
    return templates[way].copied_to(tmp_path)


def silver(chain: Chain) -> str:
    return str(chain.lake.silver("orders"))


def merge_around(chain: Chain, table: Table, change: Callable[[], object]) -> None:
    """`change` happens when the merge has looked."""
    application = chain.application(table, job=Job.SILVER_MERGE)
    task = look_at(application, table)
    assert isinstance(task, MergeTask)
    change()
    merge_table(application, task)


@BY_HAND
@EACH_WAY
def test_a_change_by_hand_behind_the_look_stops_the_merge(behind, way, statement, operation):
    table, _ = WAYS[way]

    with pytest.raises(ForeignCommitError) as caught:
        merge_around(behind, table, lambda: behind.sql(statement, silver(behind)))

    assert (caught.value.version, caught.value.operation, caught.value.ours) == (3, operation, 2)
    assert DeltaTable(silver(behind)).version() == 3


@EACH_WAY
def test_a_folder_that_is_deleted_behind_the_look_is_no_silver_to_go_on_with(behind, way):
    table, _ = WAYS[way]
    folder = Path(urlsplit(silver(behind)).path)

    with pytest.raises(SupersededError):
        merge_around(behind, table, lambda: shutil.rmtree(folder))

    assert not folder.exists()


@pytest.mark.parametrize("way", ["by place"])
def test_a_silver_that_was_made_anew_to_the_same_step_is_another_one(behind, way):
    def rebuilt() -> None:
        behind.forget_silver(ORDERS)
        behind.merge(ORDERS)
        behind.ingest(ORDERS, [order(3, 4, note="four")])
        behind.merge(ORDERS)

    with pytest.raises(SupersededError):
        merge_around(behind, ORDERS, rebuilt)

    assert notes(behind.silver(ORDERS)) == {1: "one", 2: "two", 3: "three", 4: "four"}


@pytest.mark.parametrize("way", ["by place"])
def test_who_is_overtaken_while_it_looks_does_not_take_bronze_for_a_restored_one(behind, way, monkeypatch):

    def overtaken(uri: str, *, table: str) -> Any:
        found = read_state(uri, table=table)
        monkeypatch.setattr(READ_STATE, read_state)
        behind.ingest(ORDERS, [order(3, 4, note="four")])
        behind.merge(ORDERS)
        return found

    monkeypatch.setattr(READ_STATE, overtaken)

    with pytest.raises(SupersededError):
        behind.merge(ORDERS)


@EACH_WAY
def test_a_change_by_hand_in_the_last_moment_is_never_taken_for_ours(behind, way, monkeypatch):
    table, room = WAYS[way]
    real = room.commit

    def late(statement: Callable[[], None], **named: Any) -> Any:
        behind.sql("DELETE FROM {t} WHERE id = 1", silver(behind))
        monkeypatch.setattr(room, "commit", real)
        return real(statement, **named)

    monkeypatch.setattr(room, "commit", late)
    with pytest.raises(ForeignCommitError):
        behind.merge(table)

    with pytest.raises(ForeignCommitError) as caught:
        behind.merge(table)

    assert (caught.value.version, caught.value.operation, caught.value.ours) == (3, "DELETE", 2)
