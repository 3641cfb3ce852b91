"""Tables that were discovered before, read from the lake alone."""

from __future__ import annotations

import pytest
from delta_logs import commit_of, foreign, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.lake.discovered import tables_left_in_the_lake, with_tables_of_the_lake
from cdc_lakehouse.lake.files import write_text
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


def test_a_table_that_the_pipeline_does_not_name_is_found_by_its_name_in_the_lake(lake):
    made(lake, "parcels", topic="other.public.parcels")
    pipeline = Pipeline.model_validate(DOCUMENT)

    left = tables_left_in_the_lake(pipeline, ["orders", "parcels", "nothing", "../x"], root=lake.root)

    assert [(table.name, table.topics) for table in left] == [("parcels", ("other.public.parcels",))]


def test_a_table_of_which_only_the_record_of_a_repair_is_left_is_found(lake):
    write_text(f"{lake.repairs('parcels')}/5f1c09ae77d2.json", "{}")

    left = tables_left_in_the_lake(Pipeline.model_validate(DOCUMENT), ["parcels"], root=lake.root)

    assert [table.name for table in left] == ["parcels"]
