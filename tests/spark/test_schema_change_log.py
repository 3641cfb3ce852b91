"""What was changed in silver's columns is said once, and before it is done (decision 0026)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from chain import Chain  # type: ignore[import-not-found]
from pyspark.sql import SparkSession
from shapes import NAME, SECOND, SHAPED, know, logged, record, rows, shapes, types  # type: ignore[import-not-found]

from cdc_lakehouse.inspection.catalog import Catalog
from cdc_lakehouse.inspection.query import LakeQueries
from cdc_lakehouse.silver.schema import follow
from cdc_lakehouse.silver.schema.change_log import Occasion, keep
from cdc_lakehouse.silver.schema.evolution import ChangeKind, ColumnChange

OLD, NEW, NEWER = shapes(
    {"a": "decimal(5,2)"}, {"a": "decimal(7,2)", "b": "int"}, {"a": "decimal(9,2)", "b": "int"}
)


class KilledError(Exception):
    pass


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    """Bronze has a record with wider and with more columns than silver."""
    chain = Chain(engine, root=tmp_path_factory.mktemp("log").as_uri())
    know(chain, OLD)
    chain.ingest(SHAPED, [record(OLD, 0, 1, a="1.25")])
    chain.merge(SHAPED)
    know(chain, NEW)
    chain.ingest(SHAPED, [record(NEW, 1, 2, a="12345.67", b=2)])
    return chain


@pytest.fixture
def grown(template: Chain, tmp_path: Path) -> Chain:
    return template.copied_to(tmp_path)


def killed_before_the_columns(chain: Chain) -> None:
    def die(*_args: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow, "apply_columns", die)
        with pytest.raises(KilledError):
            chain.merge(SHAPED)


def test_a_line_says_who_changed_what_when_and_for_which_version(grown):
    grown.merge(SHAPED)

    (line, _) = grown.rows(grown.lake.schema_changes, "column")
    assert (line["table"], line["change"], line["column"]) == (NAME, "widened", "a")
    assert (line["was"], line["now"], line["value_schema_ids"]) == ("decimal(5,2)", "decimal(7,2)", [SECOND])
    assert (line["bronze_version"], line["silver_step"]) == (2, 2)
    assert line["attempt"].startswith(f"{line['at']:%Y%m%d}")


def test_the_log_can_be_queried_by_its_name(grown):
    grown.merge(SHAPED)
    pipeline = grown.application(SHAPED).pipeline
    queries = LakeQueries(Catalog.of(grown.root, [pipeline]))

    found = queries.run('select "column", value_schema_ids from silver.__schema_changes order by 1')

    assert found.to_pylist() == [
        {"column": "a", "value_schema_ids": [SECOND]},
        {"column": "b", "value_schema_ids": [SECOND]},
    ]


def test_a_merge_without_a_change_says_nothing(grown):
    grown.merge(SHAPED)
    before = logged(grown)
    grown.ingest(SHAPED, [record(NEW, 2, 3, a="1.00", b=3)])

    grown.merge(SHAPED)

    assert logged(grown) == before


def test_an_attempt_that_was_killed_behind_its_lines_is_completed_without_new_ones(grown):
    killed_before_the_columns(grown)
    said = logged(grown)

    grown.merge(SHAPED)

    assert (
        logged(grown)
        == said
        == [
            ("widened", "a", "decimal(5,2)", "decimal(7,2)", [SECOND]),
            ("added", "b", None, "int", [SECOND]),
        ]
    )
    assert types(grown) == {"a": "decimal(7,2)", "b": "int"}
    assert rows(grown)[2]["b"] == 2


def test_a_repeated_attempt_that_widens_further_has_the_last_word(grown):
    killed_before_the_columns(grown)
    know(grown, NEWER)
    grown.ingest(SHAPED, [record(NEWER, 2, 3, a="1234567.89", b=3)])

    grown.merge(SHAPED)

    assert [line[:4] for line in logged(grown)] == [
        ("widened", "a", "decimal(5,2)", "decimal(9,2)"),
        ("added", "b", None, "int"),
    ]


def test_a_table_that_was_made_anew_has_lines_of_its_own(spark, tmp_path):
    for silver_id in ("first", "first", "second"):
        keep(spark, tmp_path.as_uri(), [ADDED], occasion("orders", silver_id=silver_id))

    assert said(spark, tmp_path) == [("orders", "first"), ("orders", "second")]


def test_tables_that_change_at_once_all_have_their_lines(spark, tmp_path):
    tables = ["orders", "lines", "products", "customers"]

    def change(table: str) -> None:
        keep(spark.newSession(), tmp_path.as_uri(), [ADDED], occasion(table, silver_id="first"))

    with ThreadPoolExecutor(len(tables)) as pool:
        list(pool.map(change, tables))

    assert said(spark, tmp_path) == [(table, "first") for table in sorted(tables)]


ADDED = ColumnChange(ChangeKind.ADDED, "a", None, "int")


def occasion(table: str, *, silver_id: str) -> Occasion:
    return Occasion(
        table=table,
        at=datetime(2026, 1, 2, tzinfo=UTC),
        attempt="20260102T000000Z-0badcafe",
        bronze_version=3,
        silver_id=silver_id,
        silver_step=7,
    )


def said(spark: SparkSession, folder: Path) -> list[tuple[str, str]]:
    lines = spark.read.format("delta").load(folder.as_uri()).collect()
    return sorted((line["table"], line["silver_id"]) for line in lines)
