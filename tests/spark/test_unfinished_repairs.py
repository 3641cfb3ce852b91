"""Two repairs of one table: what one has begun is finished, or given up by a plan that says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chain import CLUSTER, TOPIC_ID, Chain, table_of  # type: ignore[import-not-found]
from orders import TOPIC, know, notes, order, spoil  # type: ignore[import-not-found]
from repairs import carry_out, error_of, make_plan, verify  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.contract import ExitCode, TableResult, TableStatus
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake import files
from cdc_lakehouse.repair import erase, replacement
from cdc_lakehouse.repair.erase import Erase
from cdc_lakehouse.repair.erasure import erasing
from cdc_lakehouse.repair.operation import Operation
from cdc_lakehouse.repair.rebuild import Rebuild
from cdc_lakehouse.repair.rewind import Rewind

ORDERS = table_of("orders", history=True, deletes_limit={"rows": 0, "share": 1})
REBUILD, REWIND = Rebuild(), Rewind()
FIRST = [order(0, 1, note="one"), order(1, 7, note="a person")]
LATER = [order(2, 1, op="u", note="newer"), order(3, 3, note="three")]
WHOLE = {1: "newer", 3: "three", 7: "a person"}
KEYS = {"keys": '{"id": 7}'}


def ask_kafka(_application: Application, _topics: Any) -> ClusterFacts:
    return ClusterFacts(CLUSTER, {TOPIC: TopicFacts(TOPIC, TOPIC_ID, {0: PartitionOffsets(0, 9)})})


ERASE = Erase(ask_kafka)


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("unfinished").as_uri())
    know(chain)
    for batch in (FIRST, LATER):
        chain.ingest(ORDERS, batch)
        chain.merge(ORDERS)
    return chain


@pytest.fixture
def merged(template: Chain, tmp_path: Path) -> Chain:
    """Two batches, each ingested and merged: version 1 and version 2 of silver."""
    copy: Chain = template.copied_to(tmp_path)
    return copy


@pytest.fixture
def killed(merged: Chain, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TableResult]:
    """A try that ends at a place as a killed one does, and that the next one goes on behind."""

    def die(*_arguments: object, **_facts: object) -> Any:
        raise SupersededError(table="orders", seq=0, attempt="killed")

    def carry_out_until(repair: Operation, plan: TableResult, place: Any, name: str) -> TableResult:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, die)
            result: TableResult = carry_out(merged, ORDERS, repair, plan)
        assert error_of(result).exit_code is ExitCode.RETRY
        return result

    return carry_out_until


def rewound(chain: Chain) -> TableResult:
    plan: TableResult = make_plan(chain, ORDERS, REWIND, {"to_version": "1"})
    return plan


def ids_beside(chain: Chain) -> set[int]:
    """Keys in silver, its history and its tombstones."""
    uris = (chain.lake.silver("orders"), chain.lake.history("orders"), chain.lake.tombstones("orders"))
    return {row["id"] for uri in uris for row in chain.rows(uri)}


def test_no_earlier_plan_brings_erased_rows_back_between_the_tries_of_an_erasure(merged: Chain, killed):
    rebuild = make_plan(merged, ORDERS, REBUILD)
    carry_out(merged, ORDERS, REBUILD, rebuild)
    undo = make_plan(merged, ORDERS, REBUILD, {"undo": rebuild.plan["digest"]})
    erasure, back = make_plan(merged, ORDERS, ERASE, KEYS), rewound(merged)
    killed(ERASE, erasure, erase, "purge")

    between = [carry_out(merged, ORDERS, REBUILD, undo), carry_out(merged, ORDERS, REWIND, back)]
    finished, checked = carry_out(merged, ORDERS, ERASE, erasure), verify(merged, ORDERS, ERASE, erasure)
    behind = [carry_out(merged, ORDERS, REBUILD, undo), carry_out(merged, ORDERS, REWIND, back)]

    digest = erasure.plan["digest"]
    sentences = [error_of(result).sentence for result in between]
    assert [error_of(result).code for result in (*between, *behind)] == ["PLAN_CHANGED"] * 4
    assert [f"erase of plan {digest} began at" in sentence for sentence in sentences] == [True, True]
    assert ["`act` of its run of `cdc_cases_erase`" in sentence for sentence in sentences] == [True, True]
    assert (finished.status, checked.error, checked.counts) == (
        TableStatus.REPAIRED,
        None,
        {"rows_left": 0},
    )
    assert ids_beside(merged) == {1, 3}


def test_an_unfinished_erasure_of_the_same_keys_is_planned_as_it_was_and_nothing_else_is(
    merged: Chain, killed
):
    erasure = make_plan(merged, ORDERS, ERASE, KEYS)
    killed(ERASE, erasure, erasing.Erasure, "delete_from_silver")

    rebuild = make_plan(merged, ORDERS, REBUILD)
    second_tables = files.folders(merged.lake.shadows("orders"))
    others = make_plan(merged, ORDERS, ERASE, {"keys": '{"id": 3}'})
    again = make_plan(merged, ORDERS, ERASE, KEYS)
    finished = carry_out(merged, ORDERS, ERASE, again)

    refused = [error_of(result).sentence for result in (rebuild, others)]
    assert [f"erase of plan {erasure.plan['digest']} began at" in each for each in refused] == [True, True]
    assert second_tables == [], "a plan that is refused has computed a second table"
    assert (again.plan["digest"], finished.status) == (erasure.plan["digest"], TableStatus.REPAIRED)
    assert verify(merged, ORDERS, ERASE, erasure).error is None
    assert ids_beside(merged) == {1, 3}


def test_an_erasure_that_cannot_be_finished_keeps_nothing_waiting(merged: Chain, killed):
    """Its silver has other settings now: it says that a rebuild comes first."""
    erasure, back = make_plan(merged, ORDERS, ERASE, KEYS), rewound(merged)
    killed(ERASE, erasure, erasing.Erasure, "delete_from_silver")
    filtered = table_of("orders", filter="note <> 'three'")
    stopped = carry_out(merged, filtered, ERASE, erasure)

    earlier = carry_out(merged, ORDERS, REWIND, back)
    rebuild = make_plan(merged, filtered, REBUILD)
    done = carry_out(merged, filtered, REBUILD, rebuild)
    too_late = carry_out(merged, filtered, ERASE, erasure)

    assert "rebuild it first" in error_of(stopped).sentence
    assert "another repair of the table has begun since" in error_of(earlier).sentence
    assert (done.status, notes(merged.silver(ORDERS))) == (TableStatus.REPAIRED, {1: "newer"})
    assert error_of(too_late).code == "PLAN_CHANGED"
    assert make_plan(merged, filtered, ERASE, {"keys": '{"id": 1}'}).error is None


def test_a_rewind_waits_for_a_rebuild_that_was_killed_half_way(merged: Chain, killed):
    spoil(merged, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    rebuild, back = make_plan(merged, ORDERS, REBUILD), rewound(merged)
    killed(REBUILD, rebuild, replacement, "_overwrite_silver")

    refused = carry_out(merged, ORDERS, REWIND, back)
    finished = carry_out(merged, ORDERS, REBUILD, rebuild)
    too_late = carry_out(merged, ORDERS, REWIND, back)

    assert f"rebuild of plan {rebuild.plan['digest']} began at" in error_of(refused).sentence
    assert "`act` of its run of `cdc_cases_rebuild`" in error_of(refused).sentence
    assert (finished.status, error_of(too_late).code) == (TableStatus.REPAIRED, "PLAN_CHANGED")
    assert notes(merged.silver(ORDERS)) == WHOLE
    assert merged.merge(ORDERS).status is TableStatus.IDLE


def test_a_rewind_that_was_planned_behind_a_half_rebuild_takes_its_place_and_says_so(merged: Chain, killed):
    right = sorted((row["id"], row["note"], row["_cdc_to"]) for row in merged.history(ORDERS))
    spoil(merged, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    rebuild = make_plan(merged, ORDERS, REBUILD)
    killed(REBUILD, rebuild, replacement, "_overwrite_silver")

    back = rewound(merged)
    killed(REWIND, back, replacement, "_overwrite_silver")
    finished = carry_out(merged, ORDERS, REWIND, back)
    silver, checked = notes(merged.silver(ORDERS)), verify(merged, ORDERS, REWIND, back)
    too_late = carry_out(merged, ORDERS, REBUILD, rebuild)
    merged.merge(ORDERS)

    assert any(
        f"rebuild of plan {rebuild.plan['digest']}" in line and "takes its place" in line
        for line in back.plan["details"]
    )
    assert (finished.status, checked.error) == (TableStatus.REPAIRED, None)
    assert silver == {1: "one", 7: "a person"}
    assert "another repair of the table has begun since" in error_of(too_late).sentence
    assert notes(merged.silver(ORDERS)) == WHOLE
    assert sorted((row["id"], row["note"], row["_cdc_to"]) for row in merged.history(ORDERS)) == right
