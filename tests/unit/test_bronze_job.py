"""The ingest of a group before any Spark: which tables have work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from delta_logs import commit_of, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.bronze.job import ingest
from cdc_lakehouse.bronze.start import first_offsets
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import ENV_CONNECTION_KAFKA, ENV_CONNECTION_REGISTRY, Job, JobRequest, TableStatus
from cdc_lakehouse.errors import InvalidPipelineError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake.names import Lake, new_attempt

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOPIC = TopicFacts("shop.orders", "id1", {0: PartitionOffsets(3, 9), 1: PartitionOffsets(0, 0)})


class NoSpark(LazySession):
    def session(self):
        raise AssertionError("Spark was started")


class FakeCluster:
    """One topic; a record per hour from 9 o'clock on."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        assert settings["bootstrap.servers"] == "kafka:9092"

    def topic_names(self):
        return {TOPIC.name}

    def cut_logs(self, marks):
        return {}

    def facts(self, topics):
        return ClusterFacts("c1", {name: TOPIC for name in topics if name == TOPIC.name})

    def offsets_at(self, topic, moment):
        hours = (moment - NOON.replace(hour=9)) // timedelta(hours=1)
        return {partition: offsets.earliest + hours for partition, offsets in topic.partitions.items()}


@pytest.fixture
def application(tmp_path, monkeypatch):
    monkeypatch.setenv(ENV_CONNECTION_KAFKA, json.dumps({"host": "kafka:9092"}))
    monkeypatch.setenv(ENV_CONNECTION_REGISTRY, json.dumps({"host": "http://127.0.0.1:1"}))
    monkeypatch.setattr("cdc_lakehouse.bronze.look.Cluster", FakeCluster)

    def made(*topics: str, start: str = "earliest") -> Application:
        document = {
            "version": 1,
            "name": "shop",
            "owner": "tests",
            "schedule": "0 * * * *",
            "start_date": "2026-01-01",
            "start": start,
            "tables": [{"name": topic.rpartition(".")[2], "topics": [topic]} for topic in topics],
        }
        pipeline = Pipeline.model_validate(document)
        return Application(
            request=JobRequest(job=Job.BRONZE_INGEST, pipeline="shop", tables=(), dry_run=True),
            pipeline=pipeline,
            tables=pipeline.tables,
            lake=Lake(root=tmp_path.as_uri(), pipeline="shop"),
            attempt=new_attempt(NOON),
            spark=NoSpark("none"),
        )

    return made


def test_a_dry_run_tells_the_ranges_and_starts_no_spark(application):
    (result,) = ingest(application("shop.orders"))

    assert (result.status, result.error) == (TableStatus.PLANNED, None)
    assert result.ranges == {"shop.orders": {"0": (3, 9)}}


def test_a_table_without_news_is_idle(application):
    (result,) = ingest(application("shop.orders", start="latest"))

    assert (result.status, result.ranges) == (TableStatus.IDLE, {})


def test_a_table_without_its_topic_fails_alone(application):
    missing, orders = ingest(application("shop.customers", "shop.orders"))

    assert missing.status is TableStatus.FAILED
    assert missing.error is not None
    assert missing.error.code == "TOPIC_MISSING"
    assert orders.error is None


@pytest.mark.parametrize(
    ("start", "offsets"),
    [("earliest", {0: 3, 1: 0}), ("latest", {0: 9, 1: 0}), ("2026-01-01T11:00:00Z", {0: 5, 1: 2})],
)
def test_a_table_begins_where_the_pipeline_says(start, offsets):
    cluster = cast(Cluster, FakeCluster({"bootstrap.servers": "kafka:9092"}))

    assert first_offsets(start, TOPIC, cluster=cluster) == offsets


def discovering(application: Application) -> Application:
    document = application.pipeline.model_dump() | {"discover": {"topics": ["shop.*"]}}
    return replace(application, pipeline=Pipeline.model_validate(document))


def test_a_topic_that_appears_is_a_table_of_the_same_run(application, monkeypatch):
    monkeypatch.setattr(FakeCluster, "topic_names", lambda self: {"shop.orders", "shop.customers", "shop.1"})

    customers, orders, refused = ingest(discovering(application("shop.customers")))

    assert (customers.table, customers.error and customers.error.code) == ("customers", "TOPIC_MISSING")
    assert (orders.table, orders.status) == ("orders", TableStatus.PLANNED)
    assert (refused.table, refused.error and refused.error.code) == ("shop.1", "UNDISCOVERABLE_TOPIC")


def test_a_discovered_table_whose_topic_vanished_is_missed(application, tmp_path):
    write_log(f"{tmp_path.as_uri()}/bronze/shop/gone", commit_of(ledger_of("gone", topic="shop.gone", end=5)))

    orders, gone = ingest(discovering(application("shop.orders")))

    assert (orders.table, orders.error) == ("orders", None)
    assert (gone.table, gone.status) == ("gone", TableStatus.FAILED)


def test_a_name_that_is_neither_listed_nor_found_is_refused(application):
    made = discovering(application("shop.orders"))
    asked = replace(made, request=replace(made.request, tables=("nothing",)))

    with pytest.raises(InvalidPipelineError, match="has no table 'nothing'; it has orders"):
        ingest(asked)
