"""Tables that were discovered before, read from the lake alone."""

from __future__ import annotations

import pytest
from delta_logs import commit_of, foreign, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.lake.discovered import with_tables_of_the_lake
from cdc_lakehouse.lake.names import Lake

DOCUMENT = {
    "version": 1,
    "name": "shop",
    "owner": "tests",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01",
    "discover": {"topics": ["shop.public.*"], "exclude": ["shop.public.old"], "raw": "always"},
    "tables": [{"name": "orders", "topics": ["shop.public.orders"]}],
}


@pytest.fixture
def lake(tmp_path) -> Lake:
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def tables(lake: Lake, **changes: object) -> dict[str, tuple[str, ...]]:
    pipeline = Pipeline.model_validate({**DOCUMENT, **changes})
    return {table.name: table.topics for table in with_tables_of_the_lake(pipeline, root=lake.root).tables}


def made(lake: Lake, name: str, *, topic: str) -> None:
    write_log(lake.bronze(name), commit_of(ledger_of(name, topic=topic, end=5)))


def test_a_lake_that_is_empty_has_the_listed_tables(lake):
    assert tables(lake) == {"orders": ("shop.public.orders",)}


def test_a_table_of_a_discovered_topic_is_one_of_the_pipelines(lake):
    made(lake, "returns", topic="shop.public.returns")

    assert tables(lake)["returns"] == ("shop.public.returns",)


def test_a_table_whose_topic_is_not_asked_for_or_excluded_is_not(lake):
    made(lake, "leads", topic="shop.crm.leads")
    made(lake, "old", topic="shop.public.old")

    assert tables(lake).keys() == {"orders"}


def test_a_folder_without_a_commit_is_no_table_yet(lake):
    write_log(lake.bronze("returns"))

    assert tables(lake).keys() == {"orders"}


def test_a_pipeline_that_discovers_nothing_does_not_look(lake):
    made(lake, "returns", topic="shop.public.returns")

    assert tables(lake, discover=None).keys() == {"orders"}


def test_a_table_that_cannot_be_read_stays_for_whoever_says_why(lake):
    write_log(
        lake.bronze("returns"),
        commit_of(ledger_of("returns", topic="shop.public.returns", end=5)),
        foreign("WRITE"),
    )

    assert tables(lake).keys() == {"orders", "returns"}
