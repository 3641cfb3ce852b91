"""A table is retired: kept without its topic, moved to the archive and back, deleted; killed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chain import CLUSTER, TOPIC_ID, Chain, table_of  # type: ignore[import-not-found]
from orders import TOPIC, know, notes, order  # type: ignore[import-not-found]
from repairs import error_of, take_step  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze import decided
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ExitCode, TableResult, TableStatus
from cdc_lakehouse.errors import LakehouseError, SourceEpochSpentError, SupersededError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake import progress
from cdc_lakehouse.lake.attempts import RunningAttempt
from cdc_lakehouse.lake.lag import write_unread
from cdc_lakehouse.lake.names import new_attempt
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.repair import retire
from cdc_lakehouse.repair.operation import repair
from cdc_lakehouse.repair.retire import Retire
from cdc_lakehouse.run_modes import RepairStep

ORDERS, OTHER = table_of("orders", history=True), table_of("parcels")
BATCH = [order(0, 1, note="one"), order(1, 2, note="two"), order(2, 2, op="d")]
FOLDERS = ("silver", "history", "tombstones", "bronze")


def without_topics(application: Application, topics: Collection[str]) -> ClusterFacts:
    return ClusterFacts(CLUSTER, {})


def with_topic(application: Application, topics: Collection[str]) -> ClusterFacts:
    return ClusterFacts(CLUSTER, {TOPIC: TopicFacts(TOPIC, TOPIC_ID, {0: PartitionOffsets(0, 9)})})


RETIRE = Retire(without_topics)


@pytest.fixture
def merged(chain: Chain) -> Chain:
    know(chain)
    chain.ingest(ORDERS, BATCH)
    chain.merge(ORDERS)
    return chain


def step(
    chain: Chain,
    kind: RepairStep,
    *,
    digest: str = "",
    options: Mapping[str, str] | None = None,
    pipeline: Table = OTHER,
    retiring: Retire = RETIRE,
) -> TableResult:
    """Take a step about `orders` while the pipeline file has `pipeline` and nothing else."""
    application = chain.application(pipeline, job=retiring.job)
    request = replace(
        application.request,
        tables=("orders",),
        step=kind,
        plans=(f"orders={digest}",) if digest else (),
        options=options or {},
    )
    (result,) = repair(retiring)(replace(application, request=request))
    return result


def planned(chain: Chain, what: str) -> TableResult:
    return step(chain, RepairStep.PLAN, options={"what": what})


def acted(chain: Chain, plan: TableResult) -> TableResult:
    return step(chain, RepairStep.ACT, digest=plan.plan["digest"])


def verified(chain: Chain, plan: TableResult) -> TableResult:
    return step(chain, RepairStep.VERIFY, digest=plan.plan["digest"])


def path_of(uri: str) -> Path:
    return Path(urlsplit(uri).path)


def names_in_lake(chain: Chain) -> list[str]:
    lake = chain.lake
    uris = (lake.silver("orders"), lake.history("orders"), lake.tombstones("orders"), lake.bronze("orders"))
    return [name for name, uri in zip(FOLDERS, uris, strict=True) if path_of(uri).exists()]


def test_an_archived_table_leaves_the_lake_and_an_undo_brings_it_back_as_it_was(merged: Chain):
    rows, versions = merged.silver(ORDERS), len(merged.history(ORDERS))

    plan = planned(merged, "archive")
    first, second, checked = acted(merged, plan), acted(merged, plan), verified(merged, plan)
    gone = names_in_lake(merged)
    undo = step(merged, RepairStep.PLAN, options={"undo": plan.plan["digest"]})
    back, checked_back = acted(merged, undo), verified(merged, undo)

    effects = {name: count for name, count in plan.counts.items() if name != "bytes"}
    assert effects == {"silver_rows": 1, "history_rows": 2, "tombstones_rows": 1, "bronze_rows": 3}
    assert plan.counts["bytes"] > 0
    assert "Other tables are not touched: parcels." in plan.plan["details"]
    assert (first.counts, second.status) == ({"tables_moved": 4}, TableStatus.IDLE)
    assert (checked.error, gone) == (None, [])
    assert (back.counts, checked_back.error) == ({"tables_moved": 4}, None)
    assert (merged.silver(ORDERS), len(merged.history(ORDERS))) == (rows, versions)
    merged.ingest(ORDERS, [order(3, 3, note="three")])
    merged.merge(ORDERS)
    assert notes(merged.silver(ORDERS)) == {1: "one", 3: "three"}


def test_a_removed_table_is_gone_with_its_state_and_its_record_stays(merged: Chain):
    lake = merged.lake
    checkpoints = path_of(lake.checkpoints("orders"))
    (checkpoints / "attempt").mkdir(parents=True)
    (checkpoints / "attempt" / "metadata").write_text("{}")

    plan = planned(merged, "remove")
    done, checked = acted(merged, plan), verified(merged, plan)

    assert (done.counts, checked.error, names_in_lake(merged)) == ({"tables_deleted": 4}, None, [])
    assert not checkpoints.exists()
    assert path_of(f"{lake.repairs('orders')}/{plan.plan['digest']}.json").exists()


@pytest.mark.parametrize("what", ["archive", "remove"])
def test_a_retirement_that_was_killed_between_two_folders_is_finished_by_the_next_try(
    merged: Chain, what: str, monkeypatch: pytest.MonkeyPatch
):
    plan = planned(merged, what)
    real, calls = {name: getattr(retire, name) for name in ("move_folder", "delete_table")}, []

    def die_at_the_third(name: str):
        def die(*arguments: str) -> None:
            calls.append(name)
            if len(calls) == 3:
                raise SupersededError(table="orders", seq=0, attempt="killed")
            real[name](*arguments)

        return die

    with monkeypatch.context() as patch:
        for name in real:
            patch.setattr(retire, name, die_at_the_third(name))
        killed = acted(merged, plan)
    between, early = names_in_lake(merged), verified(merged, plan)
    finished, checked = acted(merged, plan), verified(merged, plan)

    assert (error_of(killed).exit_code, error_of(early).code) == (ExitCode.RETRY, "PLAN_CHANGED")
    assert between == ["tombstones", "bronze"]
    assert (finished.error, checked.error, names_in_lake(merged)) == (None, None, [])


def test_a_table_that_the_pipeline_reads_is_refused_with_the_way_out(merged: Chain):
    listed = step(merged, RepairStep.PLAN, options={"what": "remove"}, pipeline=ORDERS)
    merged.options = {"discover": {"topics": ["cases.*"]}}
    discovered = planned(merged, "remove")
    unclear = planned(merged, "burn")

    assert "take it out of `tables:` of the pipeline file first" in error_of(listed).sentence
    assert "name cases.orders under `exclude:`" in error_of(discovered).sentence
    assert "keep, archive, remove" in error_of(unclear).sentence


def test_a_table_that_changed_since_the_plan_or_may_be_written_is_left_as_it_is(merged: Chain):
    plan = planned(merged, "remove")
    running = new_attempt(datetime.now(UTC) - timedelta(minutes=5))
    attempt = RunningAttempt(
        merged.lake, running, job="silver_merge", clock=lambda: datetime.now(UTC) - timedelta(minutes=5)
    )
    attempt.beat()

    waits = acted(merged, plan)
    path_of(f"{merged.lake.attempts}/{running}.json").unlink()
    merged.ingest(ORDERS, [order(3, 3, note="three")])
    changed = acted(merged, plan)

    assert (error_of(waits).code, error_of(waits).exit_code) == ("REPAIR_WAITS", ExitCode.RETRY)
    assert error_of(changed).code == "PLAN_CHANGED"
    assert names_in_lake(merged) == [*FOLDERS]


def stand_in_epoch(chain: Chain) -> None:
    """Bring bronze and silver to a source epoch that earlier releases took."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (decided, progress):
            patch.setattr(module, "MAX_SOURCE_EPOCH", 2**62)
        patch.setattr(decided, "MOST_EPOCHS_AHEAD", 2**62)
        records = [order(3, 3, note="three")]
        chain.ingest(ORDERS, records, plan=chain.plan(ORDERS, records, source_epoch=2**60))
        chain.merge(ORDERS)
    with pytest.raises(SourceEpochSpentError):
        chain.plan(ORDERS, [order(4, 4)], source_epoch=1)


def damage_bronze(chain: Chain) -> None:
    (path_of(chain.lake.bronze("orders")) / "_delta_log" / f"{1:020}.json").write_text("")
    with pytest.raises(LakehouseError):
        chain.plan(ORDERS, [order(4, 4)])


@pytest.mark.parametrize("spoil", [stand_in_epoch, damage_bronze])
def test_a_table_that_no_rebuild_mends_is_archived_and_read_again(
    merged: Chain, spoil: Callable[[Chain], None]
):
    spoil(merged)

    plan = planned(merged, "archive")
    done, checked = acted(merged, plan), verified(merged, plan)
    merged.ingest(ORDERS, BATCH)
    merged.merge(ORDERS)
    merged.ingest(ORDERS, [order(3, 4)], plan=merged.plan(ORDERS, [order(3, 4, note="four")], source_epoch=1))
    merged.merge(ORDERS)

    assert (plan.error, done.error, checked.error) == (None, None, None)
    assert {row["id"]: row["_cdc_position"]["epoch"] for row in merged.silver(ORDERS)} == {1: 0, 4: 1}


def test_verification_fails_for_a_table_that_came_back(merged: Chain):
    plan = planned(merged, "archive")
    acted(merged, plan)
    merged.ingest(ORDERS, BATCH)

    checked = verified(merged, plan)

    assert error_of(checked).code == "REPAIR_NOT_VERIFIED"


def test_a_kept_table_whose_topic_is_gone_is_not_missed_any_more(merged: Chain):
    options = {"what": "keep"}
    brings = step(merged, RepairStep.PLAN, options=options, pipeline=ORDERS, retiring=Retire(with_topic))
    plan = take_step(merged, ORDERS, RETIRE, RepairStep.PLAN, options=options)
    digest = plan.plan["digest"]
    done = take_step(merged, ORDERS, RETIRE, RepairStep.ACT, digest=digest)
    again = take_step(merged, ORDERS, RETIRE, RepairStep.ACT, digest=digest)
    checked = take_step(merged, ORDERS, RETIRE, RepairStep.VERIFY, digest=digest)

    state = read_state(merged.lake.bronze("orders"), table="orders")
    assert error_of(brings).code == "REPAIR_REFUSED"
    assert (plan.counts, done.counts) == (
        {"topics_ended": 1, "offsets_given_up": 0},
        {"topics_ended": 1},
    )
    assert (again.status, checked.error) == (TableStatus.IDLE, None)
    assert state is not None
    assert state.ledger is not None
    assert state.ledger.ended == (f"{TOPIC}@{TOPIC_ID}",)
    assert notes(merged.silver(ORDERS)) == {1: "one"}


def test_a_kept_table_gives_up_the_offsets_that_its_plan_names_and_ends_once(merged: Chain):
    source, options = f"{TOPIC}@{TOPIC_ID}", {"what": "keep"}
    write_unread(merged.lake.unread("main"), {"orders": {source: {0: (3, 9)}}})
    plan = take_step(merged, ORDERS, RETIRE, RepairStep.PLAN, options=options)
    done = take_step(merged, ORDERS, RETIRE, RepairStep.ACT, digest=plan.plan["digest"])
    ended = take_step(merged, ORDERS, RETIRE, RepairStep.PLAN, options=options)

    state = read_state(merged.lake.bronze("orders"), table="orders")
    assert plan.counts == {"topics_ended": 1, "offsets_given_up": 6}
    assert (done.error, done.counts) == (None, {"topics_ended": 1})
    assert state is not None
    assert state.ledger is not None
    assert state.ledger.gaps() == {source: {0: ((3, 9),)}}
    assert state.ledger.decisions["stop_reading"]["left"] == {source: {"0": [3, 9]}}
    assert (ended.status, ended.plan["summary"]) == (TableStatus.IDLE, "its reading has ended before")


def test_more_unread_offsets_than_the_plan_names_are_not_given_up(merged: Chain):
    source = f"{TOPIC}@{TOPIC_ID}"
    plan = take_step(merged, ORDERS, RETIRE, RepairStep.PLAN, options={"what": "keep"})
    write_unread(merged.lake.unread("main"), {"orders": {source: {0: (3, 9)}}})

    refused = take_step(merged, ORDERS, RETIRE, RepairStep.ACT, digest=plan.plan["digest"])

    assert error_of(refused).code == "PLAN_CHANGED"
