"""The ingest of a group before any Spark: which tables have work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from delta_logs import commit_of, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.bronze.job import ingest
from cdc_lakehouse.bronze.look import looked
from cdc_lakehouse.bronze.start import Start, start_of
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import ENV_CONNECTION_KAFKA, ENV_CONNECTION_REGISTRY, Job, JobRequest, TableStatus
from cdc_lakehouse.errors import UnknownNameError
from cdc_lakehouse.inspection.overview import overview
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake.lag import write_unread
from cdc_lakehouse.lake.names import Lake, new_attempt
from cdc_lakehouse.lake.progress import Progress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOPIC = TopicFacts("shop.orders", "id1", {0: PartitionOffsets(3, 9), 1: PartitionOffsets(0, 0)})


class NoSpark(LazySession):
    def session(self):
        raise AssertionError("Spark was started")


class FakeCluster:
    """One topic; a record per hour from 9 o'clock on."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        assert settings["bootstrap.servers"] == "kafka:9092"

    def close(self):
        pass

    def topic_names(self):
        return {TOPIC.name}

    def cut_logs(self, marks):
        return {}

    def facts(self, topics):
        return ClusterFacts("c1", {name: TOPIC for name in topics if name == TOPIC.name})

    def offsets_at(self, topic, moment):
        hours = (moment - NOON.replace(hour=9)) // timedelta(hours=1)
        return {p: offsets.earliest + max(0, hours) for p, offsets in topic.partitions.items()}


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


def test_a_table_that_begins_at_the_end_has_its_start_to_state(application):
    (result,) = ingest(application("shop.orders", start="latest"))

    assert (result.status, result.ranges) == (TableStatus.PLANNED, {})
    assert result.decisions["start"] == {
        "setting": "latest",
        "offsets": {TOPIC.source: {"0": 9, "1": 0}},
    }


def test_a_table_that_stands_at_the_end_is_idle(application, tmp_path):
    ledger = ledger_of("orders", topic=TOPIC.name, end=9)
    begun = {0: Progress(floor=9, end=9), 1: Progress(floor=0, end=0)}
    write_log(
        f"{tmp_path.as_uri()}/bronze/shop/orders",
        commit_of(replace(ledger, cluster_id="c1", sources={TOPIC.source: begun})),
    )

    (result,) = ingest(application("shop.orders", start="latest"))

    assert (result.status, result.ranges) == (TableStatus.IDLE, {})


def test_a_table_without_its_topic_fails_alone(application):
    missing, orders = ingest(application("shop.customers", "shop.orders"))

    assert missing.status is TableStatus.FAILED
    assert missing.error is not None
    assert missing.error.code == "TOPIC_MISSING"
    assert orders.error is None


@pytest.mark.parametrize(
    ("source", "end", "code", "behind"),
    [(TOPIC.source, 1, "OFFSETS_LOST", 8), ("shop.orders@id0", 9, "TOPIC_RECREATED", 6)],
)
def test_the_lag_of_a_table_that_cannot_be_read_is_told_from_kafka(
    application, tmp_path, source, end, code, behind
):
    stands = replace(
        ledger_of("orders", topic=TOPIC.name, end=end),
        sources={source: {0: Progress(floor=0, end=end), 1: Progress(floor=0, end=0)}},
    )
    write_log(f"{tmp_path.as_uri()}/bronze/shop/orders", commit_of(stands))
    made = application("shop.orders")

    (result,) = looked(replace(made, request=replace(made.request, dry_run=False)))

    assert (result.error and result.error.code, result.lag_offsets) == (code, behind)
    (shown,) = overview(made.lake.root, [made.pipeline], now=NOON)
    assert shown.lag_offsets == end + behind


def test_what_was_seen_of_a_topic_that_is_gone_is_named_by_every_run_until_a_person_gives_it_up(
    application, tmp_path
):
    gone = "shop.customers"
    write_log(
        f"{tmp_path.as_uri()}/bronze/shop/customers", commit_of(ledger_of("customers", topic=gone, end=5))
    )
    made = application(gone)
    write_unread(made.lake.unread("main"), {"customers": {f"{gone}@id1": {0: (5, 9)}}})
    run = replace(made, request=replace(made.request, dry_run=False))

    errors = [result.error for _ in range(2) for result in looked(run)]

    assert [error.sentence.partition("; ")[2] for error in errors if error] == [
        "stop_reading: `customers=shop.customers/0:5-9,step1`"
    ] * 2
    given_up = replace(run.request, stop_reading=("customers=shop.customers/0:5-9,step1",))
    (result,) = looked(replace(run, request=given_up))
    assert result.decisions["stop_reading"]["left"] == {f"{gone}@id1": {"0": [5, 9]}}


def test_an_ingest_numbers_an_epoch_anew_that_no_column_holds_though_kafka_has_no_news(application, tmp_path):
    stuck = {0: Progress(floor=3, end=9, epochs=((5, 2**63),)), 1: Progress(floor=0, end=0)}
    ledger = replace(
        ledger_of("orders", topic=TOPIC.name, end=9), cluster_id="c1", sources={TOPIC.source: stuck}
    )
    write_log(f"{tmp_path.as_uri()}/bronze/shop/orders", commit_of(ledger))

    (result,) = looked(application("shop.orders"))

    assert (result.status, result.error) == (TableStatus.PLANNED, None)
    assert result.decisions == {"epochs_renumbered": {str(2**63): 1}}


def test_the_lag_of_a_table_that_was_never_read_is_told_from_kafka(application):
    made = application("shop.orders")

    (result,) = looked(replace(made, request=replace(made.request, dry_run=False)))

    assert (result.status, result.lag_offsets) == (TableStatus.PLANNED, 6)
    (shown,) = overview(made.lake.root, [made.pipeline], now=NOON)
    assert shown.lag_offsets == 6


def begins(setting: str, **seen: Any) -> Start:
    cluster = cast(Cluster, FakeCluster({"bootstrap.servers": "kafka:9092"}))
    return start_of(setting, [TOPIC], cluster=cluster, **seen)


@pytest.mark.parametrize(
    ("setting", "offsets", "is_final"),
    [
        ("earliest", {0: 3, 1: 0}, False),
        ("latest", {0: 9, 1: 0}, True),
        ("2026-01-01T11:00:00Z", {0: 5, 1: 0}, True),
    ],
)
def test_a_table_begins_where_the_pipeline_says(setting, offsets, is_final):
    assert begins(setting) == Start(setting, {TOPIC.name: offsets}, is_final=is_final)


def test_a_start_that_has_not_come_yet_is_asked_for_again():
    assert begins("2999-01-01T00:00:00Z") == Start("2999-01-01T00:00:00Z", {TOPIC.name: {0: 9, 1: 0}})


def test_a_topic_that_joins_a_table_is_read_from_its_first_record():
    assert begins("latest", joins=True) == Start("latest", {TOPIC.name: {0: 3, 1: 0}})
    assert begins("2026-01-01T11:00:00Z", joins=True).offsets == {TOPIC.name: {0: 5, 1: 0}}


def test_a_table_that_is_discovered_later_begins_when_the_first_one_was():
    since = NOON.replace(hour=10)

    assert begins("latest", since=since) == Start("latest", {TOPIC.name: {0: 4, 1: 0}}, is_final=True)


def discovering(application: Application) -> Application:
    document = application.pipeline.model_dump() | {"discover": {"topics": ["shop.*"]}}
    return replace(application, pipeline=Pipeline.model_validate(document))


def test_a_topic_that_appears_is_a_table_of_the_same_run(application, monkeypatch):
    monkeypatch.setattr(FakeCluster, "topic_names", lambda self: {"shop.orders", "shop.customers", "shop.1"})

    customers, orders, refused = ingest(discovering(application("shop.customers")))

    assert (customers.table, customers.error and customers.error.code) == ("customers", "TOPIC_MISSING")
    assert (orders.table, orders.status) == ("orders", TableStatus.PLANNED)
    assert (refused.table, refused.error and refused.error.code) == ("shop.1", "UNDISCOVERABLE_TOPIC")


def test_only_a_table_that_is_discovered_later_loses_none_of_its_first_records(application, tmp_path):
    first_run = discovering(application("shop.customers", start="latest"))
    of_the_first = ingest(first_run)[1].decisions["start"]["offsets"]
    old = commit_of(ledger_of("returns", topic="shop.returns", end=5))
    write_log(f"{tmp_path.as_uri()}/bronze/shop/returns", old)
    later = ingest(discovering(application("shop.customers", start="latest")))

    assert of_the_first == {TOPIC.source: {"0": 9, "1": 0}}
    assert later[2].table == "orders"
    assert later[2].decisions["start"]["offsets"] == {TOPIC.source: {"0": 3, "1": 0}}


def test_a_discovered_table_whose_topic_vanished_is_missed(application, tmp_path):
    write_log(f"{tmp_path.as_uri()}/bronze/shop/gone", commit_of(ledger_of("gone", topic="shop.gone", end=5)))

    orders, gone = ingest(discovering(application("shop.orders")))

    assert (orders.table, orders.error) == ("orders", None)
    assert (gone.table, gone.status) == ("gone", TableStatus.FAILED)


def test_a_name_that_is_neither_listed_nor_found_is_refused(application):
    made = discovering(application("shop.orders"))
    asked = replace(made, request=replace(made.request, tables=("nothing",)))

    with pytest.raises(UnknownNameError, match=r"--tables names 'nothing', .* there is orders"):
        ingest(asked)
