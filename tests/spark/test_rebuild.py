"""A rebuild: silver and history computed from bronze beside the live ones, approved, put in their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from chain import PIPELINE, Chain, table_of  # type: ignore[import-not-found]
from orders import NEW, know, notes, order, spoil  # type: ignore[import-not-found]
from repairs import carry_out, error_of, make_plan, verify  # type: ignore[import-not-found]

from cdc_lakehouse.bronze import table_decoder
from cdc_lakehouse.contract import ExitCode, Job, JobResult, TableResult, TableStatus
from cdc_lakehouse.errors import ShapeChangedError, SupersededError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.orchestration.results import Summary, judge
from cdc_lakehouse.repair import replacement
from cdc_lakehouse.repair.rebuild import Rebuild
from cdc_lakehouse.repair.records import RepairRecord

REBUILD = Rebuild()
ORDERS = table_of("orders", history=True)
FILTERED = table_of("orders", filter="note <> 'two'")
EVENTS = table_of("orders", mode="append")
BATCH = [order(0, 1, note="one"), order(1, 2, note="two"), order(2, 3, note="three"), order(3, 3, op="d")]


@pytest.fixture
def merged(chain: Chain) -> Chain:
    know(chain)
    chain.ingest(ORDERS, BATCH)
    chain.merge(ORDERS)
    return chain


def read_by_airflow(result: TableResult) -> Summary:
    """Return what the task of the job hands on."""
    text = JobResult(Job.REBUILD, PIPELINE, attempt="a", tables=(result,)).to_json()
    verdict = judge(Job.REBUILD, pipeline=PIPELINE, tables=["orders"], exit_code=0, text=text)
    assert f"plan `{result.plan['digest']}`" in verdict.report
    return verdict.summary


def versions(chain: Chain) -> list[tuple[Any, ...]]:
    rows = [(row["id"], row["note"], row["_cdc_op"], row["_cdc_to"]) for row in chain.history(ORDERS)]
    return sorted(rows, key=str)


def record_of(chain: Chain, digest: str) -> dict[str, Any]:
    path = Path(urlsplit(f"{chain.lake.repairs('orders')}/{digest}.json").path)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_rebuild_is_planned_approved_carried_out_once_and_verified(merged: Chain):
    right, right_versions = notes(merged.silver(ORDERS)), versions(merged)
    spoil(merged, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    spoil(merged, "DELETE FROM {t} WHERE id = 2")
    merged.sql("DELETE FROM {t} WHERE id = 2", merged.lake.history("orders"))

    plan = make_plan(merged, ORDERS, REBUILD)
    unchanged = notes(merged.silver(ORDERS))
    first = carry_out(merged, ORDERS, REBUILD, plan)
    second = carry_out(merged, ORDERS, REBUILD, plan)
    verified = verify(merged, ORDERS, REBUILD, plan)

    assert unchanged == {1: "spoilt"}
    assert read_by_airflow(plan)["plans"] == {"orders": plan.plan["digest"]}
    assert read_by_airflow(first)["counts"] == first.counts
    assert {name: count for name, count in plan.counts.items() if count} == {
        "rows_added": 1,
        "rows_changed": 1,
        "versions_before": 2,
        "versions_after": 3,
    }
    assert (first.status, second.status) == (TableStatus.REPAIRED, TableStatus.IDLE)
    assert (notes(merged.silver(ORDERS)), versions(merged)) == (right, right_versions)
    assert (verified.error, verified.counts) == (None, {"rows_verified": 2})
    assert not Path(urlsplit(merged.lake.shadows("orders")).path + f"/{plan.plan['digest']}").exists()
    record = record_of(merged, plan.plan["digest"])
    assert record["planned"]["user"] == "ann"
    assert (record["approved"]["user"], record["approved"]["note"]) == ("eve", "ticket 7")
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_events_that_come_after_the_plan_are_in_the_new_silver_and_merges_go_on(merged: Chain):
    spoil(merged, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    plan = make_plan(merged, ORDERS, REBUILD)
    merged.ingest(ORDERS, [order(4, 4, note="four")])
    merged.merge(ORDERS)
    merged.ingest(ORDERS, [order(5, 5, note="five")])

    carry_out(merged, ORDERS, REBUILD, plan)
    merged.ingest(ORDERS, [order(6, 1, op="u", note="newer"), order(7, 2, op="d")])
    after = merged.merge(ORDERS)

    assert notes(merged.silver(ORDERS)) == {1: "newer", 4: "four", 5: "five"}
    assert (after.error, len(versions(merged))) == (None, 6)


def test_a_table_whose_settings_changed_goes_on_after_a_rebuild_and_an_undo_stops_it_again(merged: Chain):
    merged.ingest(FILTERED, [order(4, 4, note="four")])
    with pytest.raises(ShapeChangedError):
        merged.merge(FILTERED)

    plan = make_plan(merged, FILTERED, REBUILD)
    carry_out(merged, FILTERED, REBUILD, plan)
    rebuilt = notes(merged.silver(FILTERED))
    goes_on = merged.merge(FILTERED)
    undo = make_plan(merged, FILTERED, REBUILD, {"undo": plan.plan["digest"]})
    carry_out(merged, FILTERED, REBUILD, undo)

    assert (rebuilt, goes_on.status) == ({1: "one", 4: "four"}, TableStatus.IDLE)
    assert notes(merged.silver(FILTERED)) == {1: "one", 2: "two"}
    with pytest.raises(ShapeChangedError):
        merged.merge(FILTERED)


def test_a_plan_of_a_table_that_was_repaired_since_is_refused_and_changes_nothing(merged: Chain):
    spoil(merged, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    stale, plan = make_plan(merged, ORDERS, REBUILD), make_plan(merged, ORDERS, REBUILD)
    carry_out(merged, ORDERS, REBUILD, plan)
    spoil(merged, "UPDATE {t} SET note = 'again' WHERE id = 1")

    refused = carry_out(merged, ORDERS, REBUILD, stale)

    assert (error_of(refused).code, error_of(refused).exit_code) == ("PLAN_CHANGED", ExitCode.CONFIG)
    assert notes(merged.silver(ORDERS))[1] == "again"


def test_a_rebuild_that_would_now_remove_more_than_its_plan_said_is_refused(merged: Chain):
    table = table_of("orders", history=True, deletes_limit={"rows": 0, "share": 0})
    plan = make_plan(merged, table, REBUILD)
    spoil(merged, "INSERT INTO {t} SELECT 77L, * EXCEPT (id) FROM {t} WHERE id = 1")

    refused = carry_out(merged, table, REBUILD, plan)

    assert (plan.status, error_of(refused).code) == (TableStatus.IDLE, "PLAN_CHANGED")
    assert sorted(notes(merged.silver(ORDERS))) == [1, 2, 77]


def test_a_rebuild_that_is_killed_between_any_two_commits_is_finished_by_the_next_try(
    merged: Chain, monkeypatch: pytest.MonkeyPatch
):
    right, right_versions = notes(merged.silver(ORDERS)), versions(merged)
    spoil(merged, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    plan = make_plan(merged, ORDERS, REBUILD)

    def killed_at(module: ModuleType | type, function: str) -> TableResult:
        def die(*_arguments: object, **_facts: object) -> None:
            raise SupersededError(table="orders", seq=0, attempt="killed")

        with monkeypatch.context() as patch:
            patch.setattr(module, function, die)
            result: TableResult = carry_out(merged, ORDERS, REBUILD, plan)
            return result

    before_history = killed_at(replacement, "_overwrite_step")
    before_silver = killed_at(replacement, "_overwrite_silver")
    beside = merged.merge(ORDERS)
    before_record = killed_at(RepairRecord, "with_result")
    finished = carry_out(merged, ORDERS, REBUILD, plan)

    killed = (before_history, before_silver, before_record)
    assert {error_of(result).exit_code for result in killed} == {ExitCode.RETRY}
    assert (beside.error, finished.status) == (None, TableStatus.REPAIRED)
    assert record_of(merged, plan.plan["digest"])["facts"]["before"]["silver"] == 2
    assert (notes(merged.silver(ORDERS)), versions(merged)) == (right, right_versions)
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_a_silver_of_a_copy_that_does_not_tell_what_it_passed_over_is_rebuilt(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(table_decoder, "PERSISTS", timedelta())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two", priority=1, writer=NEW)])
    chain.merge(ORDERS)
    know(chain, NEW)
    chain.replay(ORDERS)
    bronze = read_state(chain.lake.bronze("orders"), table="orders")
    assert bronze is not None
    spoil(chain, "UPDATE {t} SET note = note", passed_over={}, stands_on=None, redone=bronze.seq)
    idle, before = chain.merge(ORDERS), notes(chain.silver(ORDERS))

    plan = make_plan(chain, ORDERS, REBUILD)
    done = carry_out(chain, ORDERS, REBUILD, plan)

    assert (idle.status, before) == (TableStatus.IDLE, {1: "one"})
    assert (plan.counts["rows_added"], done.error) == (1, None)
    assert notes(chain.silver(ORDERS)) == {1: "one", 2: "two"}
    assert chain.merge(ORDERS).status is TableStatus.IDLE


def test_a_verification_that_is_killed_while_it_cleans_up_is_finished_by_the_next_one(
    merged: Chain, monkeypatch: pytest.MonkeyPatch
):
    spoil(merged, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    plan = make_plan(merged, ORDERS, REBUILD)
    carry_out(merged, ORDERS, REBUILD, plan)
    shadows = Path(urlsplit(merged.lake.shadows("orders")).path)

    def die_behind_data_files(parent: str, name: str) -> None:
        for file in (Path(urlsplit(parent).path) / name).rglob("*.parquet"):
            file.unlink()
        raise SupersededError(table="orders", seq=0, attempt="killed")

    with monkeypatch.context() as patch:
        patch.setattr(files, "delete_child", die_behind_data_files)
        killed = verify(merged, ORDERS, REBUILD, plan)
    finished = verify(merged, ORDERS, REBUILD, plan)

    assert error_of(killed).exit_code is ExitCode.RETRY
    assert (finished.error, list(shadows.iterdir())) == (None, [])


def damage_log(chain: Chain) -> None:
    """Lose a version of the log that newer ones build on."""
    log = Path(urlsplit(chain.lake.silver("orders")).path) / "_delta_log"
    (log / f"{0:020}.json").unlink()
    for checksum in log.glob("*.crc"):
        checksum.unlink()


def lose_files(chain: Chain) -> None:
    for file in Path(urlsplit(chain.lake.silver("orders")).path).glob("*.parquet"):
        file.unlink()


def rot_files(chain: Chain) -> None:
    for file in Path(urlsplit(chain.lake.silver("orders")).path).glob("*.parquet"):
        content = bytearray(file.read_bytes())
        content[40] ^= 0xFF
        file.write_bytes(content)


@pytest.mark.parametrize("damage", [damage_log, lose_files, rot_files])
def test_a_silver_that_nobody_can_read_is_rebuilt_from_bronze(merged: Chain, damage: Callable[[Chain], None]):
    right, right_versions = notes(merged.silver(ORDERS)), versions(merged)
    damage(merged)

    plan = make_plan(merged, ORDERS, REBUILD)
    done = carry_out(merged, ORDERS, REBUILD, plan)

    assert (plan.error, done.error) == (None, None)
    assert "nobody can read" in plan.plan["summary"]
    assert (notes(merged.silver(ORDERS)), versions(merged)) == (right, right_versions)
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_a_silver_of_events_that_somebody_edited_by_hand_is_rebuilt(chain: Chain):
    know(chain)
    chain.ingest(EVENTS, BATCH)
    chain.merge(EVENTS)
    chain.sql("DELETE FROM {t} WHERE id = 3", chain.lake.silver("orders"))

    plan = make_plan(chain, EVENTS, REBUILD)
    done = carry_out(chain, EVENTS, REBUILD, plan)

    assert (plan.counts["rows_added"], done.error) == (2, None)
    assert len(chain.silver(EVENTS)) == len(BATCH)
    assert chain.merge(EVENTS).status is TableStatus.IDLE
