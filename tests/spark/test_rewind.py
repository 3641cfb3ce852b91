"""A rewind: silver or bronze back at an earlier version, rows and ledger together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from chain import CLUSTER, TOPIC_ID, Chain, table_of  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import EMPTY, SOURCE, TOPIC, know, notes, order, planned  # type: ignore[import-not-found]
from repairs import carry_out, error_of, make_plan, verify  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.decided import NOTHING
from cdc_lakehouse.bronze.planning import standing
from cdc_lakehouse.contract import ExitCode, TableResult, TableStatus
from cdc_lakehouse.errors import BronzeBehindError, ForeignCommitError, SupersededError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake import file_commit
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.repair import replacement, rewind_bronze
from cdc_lakehouse.repair.rewind import Rewind

ORDERS = table_of("orders", history=True)
FIRST = [order(0, 1, note="one"), order(1, 2, note="two"), order(2, 3, note="three")]
LATER = [order(3, 1, op="u", note="newer"), order(4, 2, op="d"), order(5, 4, note="four")]
WHOLE = {1: "newer", 3: "three", 4: "four"}


def kafka(earliest: int, latest: int, *, topic_id: str = TOPIC_ID) -> Rewind:
    """A rewind while Kafka holds these offsets of the topic."""
    topic = TopicFacts(TOPIC, topic_id, {0: PartitionOffsets(earliest, latest)})

    def ask(_application: Application, _ledger: Ledger) -> ClusterFacts:
        return ClusterFacts(CLUSTER, {TOPIC: topic})

    return Rewind(ask)


REWIND = kafka(0, 6)


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("rewound").as_uri())
    know(chain)
    for batch in (FIRST, LATER):
        chain.ingest(ORDERS, batch)
        chain.merge(ORDERS)
    return chain


@pytest.fixture
def merged(template: Chain, tmp_path: Path) -> Chain:
    """Two batches, each ingested and merged."""
    return template.copied_to(tmp_path)


def state(chain: Chain, layer: str) -> TableState:
    uri = chain.lake.silver("orders") if layer == "silver" else chain.lake.bronze("orders")
    found = read_state(uri, table="orders")
    assert found is not None
    return found


def version_of_step(chain: Chain, layer: str, step: int) -> str:
    """The version whose commit states this step, as a person types it."""
    uri = chain.lake.silver("orders") if layer == "silver" else chain.lake.bronze("orders")
    for commit in DeltaTable(uri).history():
        ledger = Ledger.from_json(commit.get("userMetadata") or "", table="orders")
        if ledger is not None and ledger.seq == step:
            return str(commit["version"])
    raise AssertionError(f"no step {step}")


def plan_rewind(chain: Chain, layer: str, step: int, operation: Rewind = REWIND) -> TableResult:
    version = version_of_step(chain, layer, step)
    plan: TableResult = make_plan(chain, ORDERS, operation, {"layer": layer, "to_version": version})
    return plan


def end_of(chain: Chain, layer: str) -> int | None:
    ledger = state(chain, layer).ledger
    return None if ledger is None else ledger.end(SOURCE, 0)


def versions(chain: Chain) -> list[tuple[Any, ...]]:
    rows = [(row["id"], row["note"], row["_cdc_op"], row["_cdc_to"] is None) for row in chain.history(ORDERS)]
    return sorted(rows, key=str)


def read_again(chain: Chain, *, held: tuple[int, int] = (0, 6)) -> None:
    plan = planned(chain, held=held)
    start = plan.start[TOPIC][0]
    chain.ingest(ORDERS, [*FIRST, *LATER][start:], plan=plan)


def test_silver_and_history_go_back_together_and_the_next_merge_applies_the_rest_again(merged: Chain):
    right = versions(merged)

    plan = plan_rewind(merged, "silver", 1)
    unchanged = notes(merged.silver(ORDERS))
    first = carry_out(merged, ORDERS, REWIND, plan)
    second = carry_out(merged, ORDERS, REWIND, plan)
    back, back_versions, end = notes(merged.silver(ORDERS)), versions(merged), end_of(merged, "silver")
    verified = verify(merged, ORDERS, REWIND, plan)
    again = merged.merge(ORDERS)

    assert unchanged == WHOLE
    assert {name: count for name, count in plan.counts.items() if count} == {
        "rows_removed": 1,
        "rows_added": 1,
        "rows_changed": 1,
        "versions_before": 5,
        "versions_after": 3,
        "offsets_applied_again": 3,
    }
    assert (first.status, second.status) == (TableStatus.REPAIRED, TableStatus.IDLE)
    assert (back, end) == ({1: "one", 2: "two", 3: "three"}, 3)
    assert back_versions == [(1, "one", "c", True), (2, "two", "c", True), (3, "three", "c", True)]
    assert (verified.error, verified.counts) == (None, {"rows_verified": 3})
    assert (again.status, notes(merged.silver(ORDERS)), versions(merged)) == (
        TableStatus.ADVANCED,
        WHOLE,
        right,
    )
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_a_silver_that_somebody_edited_goes_back_to_the_newest_commit_of_ours_at_a_time(merged: Chain):
    merged.sql("UPDATE {t} SET note = 'by hand' WHERE id = 1", merged.lake.silver("orders"))
    with pytest.raises(ForeignCommitError):
        merged.merge(ORDERS)

    plan = make_plan(merged, ORDERS, REWIND, {"to_time": "2999-01-01T00:00:00+00:00"})
    done = carry_out(merged, ORDERS, REWIND, plan)

    assert (plan.counts["rows_changed"], plan.counts["offsets_applied_again"], done.error) == (1, 0, None)
    assert notes(merged.silver(ORDERS)) == WHOLE
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_a_rewind_of_silver_that_was_killed_is_finished_and_a_merge_in_between_is_right(
    merged: Chain, monkeypatch: pytest.MonkeyPatch
):
    plan = plan_rewind(merged, "silver", 1)

    def die(*_arguments: object, **_facts: object) -> int:
        raise SupersededError(table="orders", seq=0, attempt="killed")

    with monkeypatch.context() as patch:
        patch.setattr(replacement, "_overwrite_silver", die)
        killed = carry_out(merged, ORDERS, REWIND, plan)
    merged.ingest(ORDERS, [order(6, 5, note="five")])
    merged.merge(ORDERS)
    between = versions(merged)
    finished = carry_out(merged, ORDERS, REWIND, plan)
    end = end_of(merged, "silver")
    merged.merge(ORDERS)

    assert (error_of(killed).exit_code, finished.status, end) == (ExitCode.RETRY, TableStatus.REPAIRED, 3)
    assert [row[:2] for row in between] == [
        (1, "newer"), (1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five")
    ]  # fmt: skip
    assert (notes(merged.silver(ORDERS)), versions(merged)) == ({**WHOLE, 5: "five"}, between)


def test_what_verify_finds_is_red_where_another_version_was_brought_back(
    merged: Chain, monkeypatch: pytest.MonkeyPatch
):
    plan = plan_rewind(merged, "silver", 1)

    def replace_by_those_of_now(session: Any, live: Any, contents: Any, **facts: Any) -> dict[str, int]:
        read = session.read.format("delta")
        silver, history = (
            read.option("versionAsOf", DeltaTable(uri).version()).load(uri)
            for uri in (merged.lake.silver("orders"), merged.lake.history("orders"))
        )
        others = replace(contents, silver=silver, history=history)
        return replacement.replace_contents(session, live, others, **facts)

    monkeypatch.setattr("cdc_lakehouse.repair.rewind_silver.replace_contents", replace_by_those_of_now)
    carry_out(merged, ORDERS, REWIND, plan)

    error = error_of(verify(merged, ORDERS, REWIND, plan))
    assert error.code == "REPAIR_NOT_VERIFIED"
    assert "1 rows removed, 1 rows added, 1 rows changed, " in error.sentence
    assert error.sentence.endswith("4 rows removed in the history, 2 rows added in the history")


def test_a_version_whose_files_vacuum_took_is_refused_and_the_oldest_possible_one_is_named(merged: Chain):
    uri, target = merged.lake.silver("orders"), version_of_step(merged, "silver", 1)
    merged.sql("UPDATE {t} SET note = 'by hand'", uri)
    merged.session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        merged.sql("VACUUM {t} RETAIN 0 HOURS", uri)
    finally:
        merged.session.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")

    refused = make_plan(merged, ORDERS, REWIND, {"to_version": target})

    assert f"VACUUM has taken 1 file(s) of version {target}" in error_of(refused).sentence
    assert "no version is possible: rebuild it" in error_of(refused).sentence


def test_bronze_and_its_offsets_go_back_in_one_commit_and_are_read_again(merged: Chain):
    folder = Path(urlsplit(merged.lake.bronze("orders")).path)
    data, right = sorted(folder.glob("*.parquet")), versions(merged)
    before = state(merged, "bronze")

    plan = plan_rewind(merged, "bronze", 1)
    done = carry_out(merged, ORDERS, REWIND, plan)
    second = carry_out(merged, ORDERS, REWIND, plan)
    back, data_then = state(merged, "bronze"), sorted(folder.glob("*.parquet"))
    coordinates = [row["offset"] for row in merged.bronze(ORDERS)]
    verified = verify(merged, ORDERS, REWIND, plan)
    with pytest.raises(BronzeBehindError):
        merged.merge(ORDERS)
    read_again(merged)
    merge = merged.merge(ORDERS)

    assert plan.counts == {
        "rows_removed": 3,
        "rows_added": 0,
        "rows_changed": 0,
        "offsets_read_again": 3,
        "offsets_lost": 0,
    }
    assert f"{TOPIC}/0: offsets 3-5 are read again" in plan.plan["details"]
    assert any("Silver has applied 3 offset(s) behind it" in text for text in plan.plan["details"])
    assert (done.status, second.status, verified.error) == (TableStatus.REPAIRED, TableStatus.IDLE, None)
    assert (back.version, back.seq, coordinates) == (before.version + 1, before.seq + 1, [0, 1, 2])
    assert data_then == data
    assert (merge.error, notes(merged.silver(ORDERS)), versions(merged)) == (None, WHOLE, right)
    assert [row["offset"] for row in merged.bronze(ORDERS)] == [0, 1, 2, 3, 4, 5]


def test_a_bronze_that_went_back_goes_forward_again_without_reading_anything_twice(merged: Chain):
    there = version_of_step(merged, "bronze", 2)
    back = plan_rewind(merged, "bronze", 1)
    carry_out(merged, ORDERS, REWIND, back)

    forward = make_plan(merged, ORDERS, kafka(6, 6), {"layer": "bronze", "to_version": there})
    done = carry_out(merged, ORDERS, kafka(6, 6), forward)
    plan = planned(merged, held=(0, 6))

    assert (forward.counts["rows_added"], forward.counts["offsets_read_again"], done.error) == (3, 0, None)
    assert (plan.is_idle, end_of(merged, "bronze")) == (True, 6)
    assert [row["offset"] for row in merged.bronze(ORDERS)] == [0, 1, 2, 3, 4, 5]
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_a_bronze_that_somebody_edited_goes_back_and_no_foreign_commit_is_left(merged: Chain):
    uri = merged.lake.bronze("orders")
    merged.sql("DELETE FROM {t} WHERE offset = 1", uri)
    with pytest.raises(ForeignCommitError):
        standing(uri, EMPTY, decided=NOTHING, session=None)

    plan = plan_rewind(merged, "bronze", 2)
    carry_out(merged, ORDERS, REWIND, plan)

    assert (plan.counts["rows_added"], plan.counts["rows_removed"]) == (1, 0)
    assert [row["offset"] for row in merged.bronze(ORDERS)] == [0, 1, 2, 3, 4, 5]
    assert standing(uri, EMPTY, decided=NOTHING, session=None).ledger.end(SOURCE, 0) == 6
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_offsets_that_kafka_lost_are_counted_approved_and_a_gap_from_then_on(merged: Chain):
    plan = plan_rewind(merged, "bronze", 1, kafka(5, 6))
    outdated = carry_out(merged, ORDERS, kafka(6, 6), plan)
    done = carry_out(merged, ORDERS, kafka(5, 6), plan)
    verified = verify(merged, ORDERS, kafka(5, 6), plan)
    read_again(merged, held=(5, 6))

    ledger = state(merged, "bronze").ledger
    assert ledger is not None
    assert (plan.counts["offsets_read_again"], plan.counts["offsets_lost"]) == (1, 2)
    assert (error_of(outdated).code, done.error, verified.error) == ("PLAN_CHANGED", None, None)
    assert (ledger.sources[SOURCE][0].gaps, end_of(merged, "bronze")) == (((3, 5),), 6)
    assert [row["offset"] for row in merged.bronze(ORDERS)] == [0, 1, 2, 5]
    assert (merged.merge(ORDERS).error, notes(merged.silver(ORDERS))) == (None, WHOLE)


def test_a_rewind_of_bronze_that_was_killed_around_its_commit_is_finished_once(
    merged: Chain, monkeypatch: pytest.MonkeyPatch
):
    plan, commit = plan_rewind(merged, "bronze", 1), file_commit.commit_version_again

    def die(*_arguments: object, **_facts: object) -> int:
        raise SupersededError(table="orders", seq=0, attempt="killed")

    def commit_and_die(*arguments: Any, **facts: Any) -> int:
        commit(*arguments, **facts)
        raise SupersededError(table="orders", seq=0, attempt="killed")

    monkeypatch.setattr(rewind_bronze, "commit_version_again", die)
    carry_out(merged, ORDERS, REWIND, plan)
    before = state(merged, "bronze")
    monkeypatch.setattr(rewind_bronze, "commit_version_again", commit_and_die)
    carry_out(merged, ORDERS, REWIND, plan)
    after = state(merged, "bronze")
    monkeypatch.setattr(rewind_bronze, "commit_version_again", commit)
    finished = carry_out(merged, ORDERS, REWIND, plan)

    assert (before.seq, after.seq, state(merged, "bronze")) == (2, 3, after)
    assert finished.status is TableStatus.REPAIRED
    assert verify(merged, ORDERS, REWIND, plan).error is None


def test_a_bronze_without_a_data_file_goes_back_to_a_version_that_is_whole(merged: Chain):
    uri = merged.lake.bronze("orders")
    now = set(DeltaTable(uri).file_uris())
    (newest,) = now - set(DeltaTable(uri, version=int(version_of_step(merged, "bronze", 1))).file_uris())
    Path(urlsplit(newest).path).unlink()

    plan = plan_rewind(merged, "bronze", 1)
    done = carry_out(merged, ORDERS, REWIND, plan)
    read_again(merged)

    assert (plan.error, done.error) == (None, None)
    assert "files of the live table are gone: its rows cannot be counted" in plan.plan["details"]
    assert (merged.merge(ORDERS).error, notes(merged.silver(ORDERS))) == (None, WHOLE)
