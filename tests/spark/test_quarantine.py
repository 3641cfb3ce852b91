"""Records that cannot be decoded: counted, listed, and never more than a table allows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from chain import PIPELINE, Chain  # type: ignore[import-not-found]
from orders import ORDERS, TOPIC, know, notes, order  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import OnQuarantine, QuarantineLimit
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import QuarantineLimitError, QuarantineOpenError
from cdc_lakehouse.inspection.quarantine import quarantine
from cdc_lakehouse.lake.quarantine import cases, open_cases
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.lake.state import read_state
from unit.debezium_records import envelope_schema, event, field, framed, key_schema  # type: ignore[import-not-found]

STOPS = ORDERS.model_copy(update={"on_quarantine": OnQuarantine.STOP})
LIMITED = ORDERS.model_copy(update={"quarantine_limit": QuarantineLimit()})
STRICT = ORDERS.model_copy(update={"quarantine_limit": QuarantineLimit(records=1)})


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("quarantine").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one")])
    chain.ingest(ORDERS, [order(1, 2, note="two"), junk(2), junk(3), replace(order(4, 1), value=b"\x00\x00")])
    return chain


@pytest.fixture
def holding(template: Chain, tmp_path: Path) -> Chain:
    """Bronze holds two good records and three that cannot be decoded."""
    return template.copied_to(tmp_path)


def junk(offset: int) -> KafkaRecord:
    return replace(order(offset, 1), value=b"junk")


def bronze(chain: Chain) -> str:
    return str(chain.lake.bronze("orders"))


def test_records_that_name_schemas_of_another_topic_are_refused_alone(chain):
    """A key's schema in a value ended the run for good, and a strange envelope gave the table its columns."""
    know(chain)
    other = envelope_schema([field("id", "long"), field("stray", "string")], topic="shop.public.other")
    event_of_other = event(op="c", after={"id": 9, "stray": "x"})
    strange = {900: json.dumps(other), 901: json.dumps({**key_schema(), "namespace": "shop.public.other"})}
    chain.registry.register("shop.public.other", keys={901: strange[901]}, values={900: strange[900]})

    result = chain.ingest(
        ORDERS,
        [
            order(0, 1, note="one"),
            replace(order(1, 2), value=framed(900, other, event_of_other)),
            replace(order(2, 3), value=framed(901, json.loads(strange[901]), {"id": 3})),
            replace(order(3, 4), key=framed(901, json.loads(strange[901]), {"id": 4})),
            order(4, 5, note="five"),
        ],
    )

    rows = chain.bronze(ORDERS)
    assert [row["decode_error"] and row["decode_error"]["code"] for row in rows] == [
        None,
        *["wrong_schema"] * 3,
        None,
    ]
    assert (result.errors_by_code, list(rows[0]["after"])) == ({"wrong_schema": 3}, ["id", "note"])


@pytest.mark.parametrize("optimized", [False, True])
def test_open_cases_are_counted_by_statistics_alone(holding, optimized):
    if optimized:
        holding.sql("OPTIMIZE {t}", bronze(holding))
    for file in Path(bronze(holding).removeprefix("file://")).glob("*.parquet"):
        file.write_bytes(b"")

    assert open_cases(bronze(holding)) == 3


def test_only_files_with_cases_are_opened(holding):
    snapshot = newest_snapshot(bronze(holding))
    assert snapshot is not None
    first = next(file for file in snapshot.files if file.rows == 1)
    Path(f"{bronze(holding)}/{first.path}".removeprefix("file://")).write_bytes(b"")

    found = cases(bronze(holding))

    assert found is not None
    assert sorted(found["offset"].to_pylist()) == [2, 3, 4]


def test_files_without_that_statistic_are_counted_too(holding):
    holding.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.dataSkippingStatsColumns = 'offset')", bronze(holding)
    )
    holding.sql("OPTIMIZE {t}", bronze(holding))

    assert open_cases(bronze(holding)) == 3


def test_no_table_has_no_cases(tmp_path):
    assert open_cases((tmp_path / "none").as_uri()) == 0
    assert cases((tmp_path / "none").as_uri()) is None


def test_the_listing_says_what_where_and_since_when(holding):
    pipeline = holding.application(ORDERS).pipeline

    found = quarantine(holding.root, [pipeline])

    assert [(each.pipeline, each.table, each.code, each.count, each.first) for each in found] == [
        (PIPELINE, "orders", "bad_frame", 3, (f"{TOPIC}/0@2", f"{TOPIC}/0@3", f"{TOPIC}/0@4"))
    ]
    assert "0x6a" in found[0].detail


def test_a_merge_says_by_how_many_records_it_is_incomplete(holding):
    result = holding.merge(ORDERS)

    assert result.open_cases == 3
    assert notes(holding.silver(ORDERS)) == {1: "one", 2: "two"}


def test_a_table_that_says_stop_leaves_silver_as_it_is(holding):
    with pytest.raises(QuarantineOpenError) as caught:
        holding.merge(STOPS)

    assert str(caught.value).startswith("3 record(s) of orders in bronze could not be decoded")
    assert read_state(holding.lake.silver("orders"), table="orders") is None
    holding.merge(ORDERS)
    assert holding.merge(STOPS).status is TableStatus.IDLE  # nothing is left to do: nothing stops


def test_a_run_of_nothing_but_undecodable_records_is_red_until_others_come_or_a_person_takes_it(holding):
    with pytest.raises(QuarantineLimitError):
        holding.ingest(LIMITED, [junk(5)])
    assert holding.ingest(LIMITED, [junk(5), order(6, 6)]).counts["undecodable"] == 1
    with pytest.raises(QuarantineLimitError):
        holding.ingest(LIMITED, [junk(7)])

    assert holding.ingest(ORDERS, [junk(7)]).counts["undecodable"] == 1


def test_undecodable_records_of_several_runs_add_up(holding, monkeypatch):
    """The ledger remembers them: three of five are there, and a hundred need not come again."""
    monkeypatch.setattr("cdc_lakehouse.bronze.mass.LEAST", 5)

    with pytest.raises(QuarantineLimitError) as caught:
        holding.ingest(LIMITED, [junk(5), junk(6), order(7, 7)])

    assert (caught.value.bad, caught.value.rows) == (5, 8)
    assert holding.ingest(LIMITED, [order(5, 5)]).counts["undecodable"] == 0
    assert holding.ingest(ORDERS, [junk(6), junk(7), order(8, 8)]).counts["undecodable"] == 2


def test_more_than_the_limit_writes_nothing(holding):
    before = read_state(bronze(holding), table="orders")

    with pytest.raises(QuarantineLimitError) as caught:
        holding.ingest(STRICT, [order(5, 5), junk(6), junk(7)])

    assert str(caught.value).startswith(
        "2 of 3 record(s) of orders in this run cannot be decoded (bad_frame 2)"
    )
    assert read_state(bronze(holding), table="orders") == before
    assert holding.ingest(ORDERS, [order(5, 5), junk(6), junk(7)]).counts["undecodable"] == 2
