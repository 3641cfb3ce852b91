"""Queries over tables by name: real Delta tables, written without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_lakehouse.inspection.catalog import Catalog, NamedTable
from cdc_lakehouse.inspection.query import LakeQueries, QueryRefusedError


@pytest.fixture
def queries(tmp_path) -> LakeQueries:
    orders = tmp_path / "orders"
    write_deltalake(orders, pa.table({"id": [1, 2], "note": ["a", None]}))
    write_deltalake(orders, pa.table({"id": [3], "note": [""]}), mode="append")
    uri, missing = orders.as_uri(), (tmp_path / "refunds").as_uri()
    names = [("silver", "orders", uri), ("silver_shop", "orders", uri), ("silver", "refunds", missing)]
    return LakeQueries(Catalog(tuple(NamedTable(*name) for name in names)))


def refusal(queries: LakeQueries, query: str) -> str:
    with pytest.raises(QueryRefusedError) as refused:
        queries.run(query)
    return str(refused.value)


@pytest.mark.parametrize(
    "name", ["silver.orders", "silver_shop.orders", "SILVER.Orders", '"silver"."orders"']
)
def test_a_table_has_its_rows_under_each_of_its_names(queries, name):
    assert queries.run(f"select id from {name} order by id")["id"].to_pylist() == [1, 2, 3]


def test_a_table_can_be_joined_with_itself(queries):
    query = "with a as (select * from silver.orders) select count(*) n from a, silver_shop.orders"

    assert queries.run(query)["n"].to_pylist() == [9]


def test_the_next_query_sees_new_rows(queries):
    queries.run("select * from silver.orders")
    write_deltalake(
        next(table.uri for table in queries.catalog.tables),
        pa.table({"id": [4], "note": ["x"]}),
        mode="append",
    )

    assert queries.run("select max(id) m from silver.orders")["m"].to_pylist() == [4]


@pytest.mark.parametrize("name", ["silver.order", "orders", "silvr.orders"])
def test_a_wrong_name_is_answered_with_the_right_one(queries, name):
    assert (
        refusal(queries, f"select * from {name}") == f"there is no table {name}; did you mean silver.orders?"
    )


def test_a_table_without_data_is_not_a_wrong_name(queries):
    assert refusal(queries, "select * from silver.refunds").startswith("silver.refunds has no data yet")


@pytest.mark.parametrize(
    "query", ["drop table x", "create table x (i int)", "copy (select 1) to 'x.csv'", "attach 'x.db'"]
)
def test_the_lake_is_read_only(queries, query):
    assert refusal(queries, query) == "the lake is read only here: select, describe and explain work"


def test_files_beside_the_lake_cannot_be_read(queries):
    assert "disabled by configuration" in refusal(queries, "select * from read_csv('/etc/hostname')")


@pytest.mark.parametrize("query", ["", "select 1; select 2"])
def test_one_statement_at_a_time(queries, query):
    assert refusal(queries, query) == "one statement at a time, please"


def test_tables_can_be_listed(queries):
    assert queries.run("show tables;")["table"].to_pylist() == [
        "silver.orders",
        "silver_shop.orders",
        "silver.refunds",
    ]


def test_a_name_that_two_pipelines_have_needs_its_pipeline():
    catalog = Catalog.of("file:///lake", [_pipeline("shop", "orders", "refunds"), _pipeline("crm", "orders")])

    assert [table.qualified for table in catalog.tables if table.schema.startswith("silver")] == [
        "silver_shop.orders",
        "silver.refunds",
        "silver_shop.refunds",
        "silver_shop.__schema_changes",
        "silver_crm.orders",
        "silver_crm.__schema_changes",
    ]


def test_the_log_of_schema_changes_has_a_name(tmp_path):
    write_deltalake(tmp_path / "silver/shop/__schema_changes", pa.table({"column": ["total"]}))
    queries = LakeQueries(Catalog.of(tmp_path.as_uri(), [_pipeline("shop", "orders")]))

    assert queries.run("select * from silver.__schema_changes")["column"].to_pylist() == ["total"]


def _pipeline(name: str, *tables: str):
    from cdc_lakehouse.config.models import Pipeline

    return Pipeline.model_validate(
        {
            "version": 1,
            "name": name,
            "owner": "somebody",
            "schedule": "0 * * * *",
            "start_date": "2026-01-01",
            "tables": [{"name": table, "topics": [f"{name}.{table}"]} for table in tables],
        }
    )
