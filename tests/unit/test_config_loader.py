"""A pipeline file is found by its name and read with every default filled in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lakehouse.config.loader import find_pipeline, load_pipeline, pipeline_files
from cdc_lakehouse.config.models import Mode, Raw
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.errors import InvalidPipelineError

HEAD = """\
version: 1
name: shop
owner: data-platform
schedule: "*/15 * * * *"
start_date: 2026-01-01
"""
TABLES = """\
tables:
  - name: orders
    topics: [shop.public.orders]
"""


@pytest.fixture
def write(tmp_path: Path):
    def write_text(text: str, name: str = "shop") -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def test_a_minimal_file_gets_every_default(write):
    pipeline = load_pipeline(write(HEAD + TABLES))

    assert pipeline.name == "shop"
    assert pipeline.start_date == date(2026, 1, 1)
    assert pipeline.start == "earliest"
    assert pipeline.connections.kafka == "lakehouse_kafka"
    assert pipeline.retry.attempts == 4
    assert pipeline.maintenance.vacuum_retention == "7d"
    assert pipeline.table("orders").max_offsets_per_trigger == 500_000
    assert pipeline.table("orders").group == "main"


def test_a_table_stands_above_the_defaults_of_its_pipeline(write):
    text = """\
defaults:
  raw: always
  max_offsets_per_trigger: 1_000
tables:
  - name: orders
    topics: [a]
  - name: customers
    topics: [b]
    raw: undecodable
"""
    pipeline = load_pipeline(write(HEAD + text))

    assert pipeline.table("orders").raw is Raw.ALWAYS
    assert pipeline.table("orders").max_offsets_per_trigger == 1000
    assert pipeline.table("customers").raw is Raw.UNDECODABLE
    assert pipeline.table("customers").max_offsets_per_trigger == 1000


def test_a_discovered_table_has_the_mode_of_its_kind(write):
    discover = load_pipeline(write(HEAD + "discover: {topics: [shop.log.*], mode: append}\n")).discover

    assert discover is not None
    assert discover.table("clicks", topics=("shop.log.clicks",)).mode is Mode.APPEND


def test_groups_keep_the_order_of_the_file(write):
    text = """\
tables:
  - {name: c, topics: [c]}
  - {name: a, topics: [a], group: slow}
  - {name: b, topics: [b]}
"""
    groups = load_pipeline(write(HEAD + text)).groups

    assert {name: [table.name for table in tables] for name, tables in groups.items()} == {
        "main": ["c", "b"],
        "slow": ["a"],
    }
    assert list(groups) == ["main", "slow"]


def test_the_schedule_begins_at_midnight_of_the_pipelines_own_zone(write):
    pipeline = load_pipeline(write(HEAD + "timezone: Europe/Vienna\n" + TABLES))

    assert pipeline.start_moment.astimezone(UTC) == datetime(2025, 12, 31, 23, 0, tzinfo=UTC)


def test_a_table_that_the_pipeline_does_not_have_is_a_key_error(write):
    with pytest.raises(KeyError):
        load_pipeline(write(HEAD + TABLES)).table("nope")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90m", timedelta(minutes=90)), ("12h", timedelta(hours=12)), ("7d", timedelta(days=7))],
)
def test_a_duration_counts_minutes_hours_or_days(text, expected):
    assert duration(text) == expected


def test_an_unquoted_time_and_a_table_called_no_stay_text(write):
    text = "start: 2026-01-31T00:00:00Z\ntables:\n  - {name: no, topics: [on]}\n"
    pipeline = load_pipeline(write(HEAD + text))

    assert pipeline.start == "2026-01-31T00:00:00Z"
    assert [(table.name, table.topics) for table in pipeline.tables] == [("no", ("on",))]


def test_a_pipeline_is_found_by_its_name(write, tmp_path):
    write(HEAD + TABLES)

    assert find_pipeline("shop", tmp_path).name == "shop"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("shpo", "there is no such file; did you mean `shop`?"),
        ("zzz", "there is no such file; pipelines here: shop"),
        ("../shop", "there is no such file; did you mean `shop`?"),
        ("old", "rename old.yml to old.yaml"),
    ],
)
def test_a_name_without_a_file_says_what_there_is(write, tmp_path, name, problem):
    write(HEAD + TABLES)
    (tmp_path / "old.yml").touch()

    with pytest.raises(InvalidPipelineError) as caught:
        find_pipeline(name, tmp_path)

    assert caught.value.problem == problem


def test_pipeline_files_are_the_yaml_files_in_order(tmp_path):
    for name in ("b.yaml", "a.yaml", "schema.json", "c.yml"):
        (tmp_path / name).touch()

    assert [path.name for path in pipeline_files(tmp_path)] == ["a.yaml", "b.yaml"]
