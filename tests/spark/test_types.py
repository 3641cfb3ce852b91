"""Every type through bronze and silver, as three engines read it back, beside PostgreSQL's own words.

What differs is a known inequality (`cdc-semantics` §7; the records are those of `tests/unit/captured`).
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa
import pytest
from captured_silver import final_rows, merged, silver_differences  # type: ignore[import-not-found]
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable, QueryBuilder

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.inspection.rows import read_rows
from unit.captured_records import Topic, topics  # type: ignore[import-not-found]
from unit.postgres_known import covering  # type: ignore[import-not-found]

OTHER_TYPES = {
    ("iso", "numbers"),
    ("iso", "texts"),
    ("iso", "times"),
    ("structured", "numbers"),
    ("structured", "times"),
    ("structured", "arrays"),
    ("connect", "times"),
    ("nanos", "times"),
}
"""Beside profile `precise`: what gives silver other types, or other values."""
KEYLESS = "keyless"
TOPICS = [
    topic
    for topic in topics()
    if topic.relation != KEYLESS and (topic.profile == "precise" or (topic.profile, topic.relation) in OTHER_TYPES)
]


def by_spark(chain: Chain, table: Table) -> pa.Table:
    return chain.session.read.format("delta").load(chain.lake.silver(table.name)).toArrow()


def by_duckdb(chain: Chain, table: Table) -> pa.Table:
    """As `make sql` reads it."""
    database = duckdb.connect(":memory:")
    database.execute("SET TimeZone = 'UTC'")
    database.register("silver", read_rows(chain.lake.silver(table.name)))
    return database.sql("SELECT * FROM silver").to_arrow_table()


def by_deltalake(chain: Chain, table: Table) -> pa.Table:
    """By its DataFusion: what Rust and Python read without Spark."""
    silver = DeltaTable(chain.lake.silver(table.name))
    found = QueryBuilder().register("silver", silver).execute("SELECT * FROM silver")
    return pa.table(found.read_all())


@pytest.fixture(scope="module")
def silver(engine, tmp_path_factory) -> dict[str, tuple[Chain, Table]]:
    """A lake for every topic: two registries gave out their ids."""
    chains = {topic.name: Chain(engine, tmp_path_factory.mktemp("types").as_uri()) for topic in TOPICS}
    return {topic.name: (chains[topic.name], merged(chains[topic.name], topic)) for topic in TOPICS}


@pytest.mark.parametrize("read", [by_spark, by_duckdb, by_deltalake])
@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_silver_is_what_postgresql_said(silver, topic: Topic, read: Callable[[Chain, Table], pa.Table]):
    found = silver_differences(topic, read(*silver[topic.name]))
    assert [each for each in found if not covering(each)] == []


def test_only_a_table_that_was_emptied_compares_no_rows():
    assert [topic.name for topic in TOPICS if not final_rows(topic)] == ["precise.toasted_full"]
