"""One huge partition beside small ones, and records of 20 MB: backlogs, drained by one application."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backlogs import HEAD, fill, make_topic, one_record, register_like, run_job  # type: ignore[import-not-found]
from deltalake import DeltaTable

from cdc_lakehouse.contract import Job, TableStatus
from cdc_lakehouse.lake.names import Lake

HUGE, SMALL = 120_000, 300
WIDE = 20 * 1024 * 1024
PIPELINE = """\
tables_at_once: 1
defaults: {max_offsets_per_trigger: 80000}
tables:
  - {name: skewed, topics: [backlog.public.skewed]}
  - {name: wide, topics: [backlog.public.wide], quarantine_limit: {share: 1}}
  - {name: absent, topics: [backlog.public.absent]}
"""


@pytest.fixture(scope="module")
def drained(stack, tmp_path_factory):
    stack.connector.wait_until_captured()
    folder = tmp_path_factory.mktemp("backlog")
    (folder / "backlog.yaml").write_text(HEAD.format(name="backlog") + PIPELINE)
    key, value = one_record(stack, "shop.public.customers")
    for topic in ("backlog.public.skewed", "backlog.public.wide"):
        register_like(stack, topic, like="shop.public.customers")
    make_topic(stack, "backlog.public.skewed", partitions=4)
    fill(stack, "backlog.public.skewed", key=key, value=value, counts={0: HUGE, 1: SMALL, 2: SMALL, 3: SMALL})
    make_topic(stack, "backlog.public.wide", max_message_bytes="26214400")
    wide = bytes(WIDE)
    fill(stack, "backlog.public.wide", key=key, value=wide, counts={0: 8}, message_max_bytes="26214400")
    return run_job(stack, folder, Job.BRONZE_INGEST, pipeline="backlog")


@pytest.fixture(scope="module")
def tables(drained):
    return {table.table: table for table in drained[0].tables}


def test_every_record_of_every_partition_is_in_bronze_once(stack, tables):
    assert (tables["skewed"].status, tables["skewed"].error) == (TableStatus.ADVANCED, None)
    assert tables["skewed"].counts["appended"] == HUGE + 3 * SMALL
    assert tables["skewed"].ranges["backlog.public.skewed"] == {
        "0": (0, HUGE),
        **dict.fromkeys("123", (0, SMALL)),
    }


def test_the_backlog_is_read_in_bounded_batches(tables):
    assert tables["skewed"].batches == 2


def test_one_huge_partition_is_read_by_several_tasks(stack, tables):
    """A task writes a file: the first batch has more than one that holds nothing but the huge partition."""
    lake = Lake(root=stack.site.layout.lake.as_uri(), pipeline="backlog")
    stats = _stats_of_version(lake.bronze("skewed"), tables["skewed"].versions["bronze"] - 1)

    huge_only = [
        each for each in stats if each["minValues"]["partition"] == each["maxValues"]["partition"] == 0
    ]

    assert len(huge_only) >= 2
    assert max(each["numRecords"] for each in huge_only) <= HUGE / 2


def test_the_report_has_the_final_numbers_of_the_drain(tables):
    drain = tables["skewed"].drain

    assert (drain["done"], drain["left"]) == (HUGE + 3 * SMALL, 0)
    assert drain["per_second"] > 0


def test_records_of_20_mb_are_kept_whole(tables):
    wide = tables["wide"]

    assert (wide.status, wide.error) == (TableStatus.ADVANCED, None)
    assert (wide.counts["appended"], wide.counts["undecodable"]) == (8, 8)


def test_a_table_without_its_topic_stops_no_other(tables):
    assert tables["absent"].error is not None
    assert tables["absent"].error.code == "TOPIC_MISSING"


def _stats_of_version(uri: str, version: int) -> list[dict[str, Any]]:
    log = DeltaTable(uri).table_uri.removeprefix("file://").rstrip("/") + "/_delta_log"
    with open(f"{log}/{version:020d}.json", encoding="utf-8") as commit:  # noqa: PTH123
        actions = [json.loads(line) for line in commit]
    return [json.loads(action["add"]["stats"]) for action in actions if "add" in action]
