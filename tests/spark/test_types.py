"""Every type through bronze and silver, given back by Spark and by two readers of DuckDB.

What differs from PostgreSQL's own words is a known inequality.
The records are those of `tests/unit/captured` (`cdc-semantics` §7).
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
from cdc_lakehouse.lake.rows import read_rows
from unit.captured_records import Topic, topics  # type: ignore[import-not-found]
from unit.postgres_known import covering  # type: ignore[import-not-found]

CHOSEN = {
    "precise": (
        "numbers", "digits", "texts", "times", "arrays", "ranges", "shapes", "domains", "typed_keys",
        "made_defaults", "evolving", "toasted", "Weird Name", "vectors", "contrib",
    ),
    "iso": ("numbers", "texts", "times"),
    "structured": ("times", "arrays"),
}  # fmt: skip
"""What gives silver another type, or another value of it; a table costs seconds."""
IN_SILVER = {
    "bit-length", "far-days", "far-moments", "infinity", "interval-months", "long-interval",
    "long-number", "midnight-as-record", "midnight-as-text", "name", "negative-scale", "not-a-number",
    "not-a-number-item", "null-becomes-default", "null-item", "old-days", "old-instants", "old-moments",
    "time-items", "timetz-offset", "trailing-zeros",
}  # fmt: skip
"""Of those whose records silver was given; the rest have no field, or are of events that it does not take."""
TOPICS = [topic for topic in topics() if topic.relation in CHOSEN.get(topic.profile, ())]


def by_spark(chain: Chain, table: Table) -> pa.Table:
    return chain.session.read.format("delta").load(chain.lake.silver(table.name)).toArrow()


def by_duckdb(chain: Chain, table: Table) -> pa.Table:
    """As `make sql` reads it."""
    database = duckdb.connect(":memory:")
    database.execute("SET TimeZone = 'UTC'")
    database.register("silver", read_rows(chain.lake.silver(table.name)))
    return database.sql("SELECT * FROM silver").to_arrow_table()


def by_duckdb_alone(chain: Chain, table: Table) -> pa.Table:
    """With its own reader of Parquet; a table of one merge has no deletion vectors."""
    files = DeltaTable(chain.lake.silver(table.name)).file_uris()
    database = duckdb.connect(":memory:")
    database.execute("SET TimeZone = 'UTC'")
    return database.read_parquet(files).to_arrow_table()


@pytest.fixture(scope="module")
def silver(engine, tmp_path_factory) -> dict[str, tuple[Chain, Table]]:
    """A lake for every topic: two registries gave out their ids."""
    chains = {topic.name: Chain(engine, tmp_path_factory.mktemp("types").as_uri()) for topic in TOPICS}
    return {topic.name: (chains[topic.name], merged(chains[topic.name], topic)) for topic in TOPICS}


@pytest.mark.parametrize("read", [by_spark, by_duckdb, by_duckdb_alone])
@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_silver_is_what_postgresql_said(silver, topic: Topic, read: Callable[[Chain, Table], pa.Table]):
    found = silver_differences(topic, read(*silver[topic.name]))
    assert [each for each in found if not covering(each)] == []


def test_silver_has_the_inequalities_that_its_records_have(silver):
    found = [silver_differences(topic, by_duckdb(*silver[topic.name])) for topic in TOPICS]

    assert {covering(each)[0] for differences in found for each in differences} == IN_SILVER


def test_every_topic_has_rows_to_compare():
    assert [topic.name for topic in TOPICS if not final_rows(topic)] == []


def test_delta_rs_reads_a_table_whose_types_were_never_widened(silver):
    chain, table = silver["precise.texts"]

    engine = QueryBuilder().register("silver", DeltaTable(chain.lake.silver(table.name)))

    assert len(pa.table(engine.execute("SELECT * FROM silver"))) == len(chain.silver(table))
