"""The look of an ingest observes what the source's connector has confirmed; what fails costs only that."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from delta_logs import commit_of, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.bronze.look import looked
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.connect.connectors import Connector, Part
from cdc_lakehouse.contract import (
    ENV_CONNECTION_CONNECT,
    ENV_CONNECTION_KAFKA,
    ENV_CONNECTION_SOURCE,
    ENV_CONNECTION_STORAGE,
    Job,
    JobRequest,
    TableResult,
    TableStatus,
)
from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.errors import BrokerUnavailableError, ConnectUnavailableError, SourceUnavailableError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.kafka.offsets_topic import Committed
from cdc_lakehouse.lake.names import Lake, new_attempt
from cdc_lakehouse.silver.look import looked as silver_looked

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOPIC = "shop.public.orders"
NOT_CONFIRMED = "nobody said what the connector has committed, or the table has not read so far"


class Kafka:
    """One topic with nine records, all of which the table has read."""

    topic_id = "id1"
    epoch: int | None = None
    cut: bool = False
    end = 9
    away = False

    def __init__(self, settings) -> None:
        pass

    def close(self) -> None:
        pass

    def facts(self, topics):
        offsets = {0: PartitionOffsets(0, 9, self.epoch)}
        return ClusterFacts("c1", {TOPIC: TopicFacts(TOPIC, "id1", offsets)})

    def written(self, topics):
        if self.away:
            raise BrokerUnavailableError(bootstrap="kafka:9092", reason="gone")
        return {f"{TOPIC}@{self.topic_id}": {0: self.end}}

    def cut_logs(self, marks):
        return {place: 3 for place in marks if self.cut}


class Source:
    """Time and log go on with each look; the connector is a little behind."""

    looks = 0
    relations = frozenset({"public.orders"})
    away = False
    server = "shop"
    snapshot: str | None = None

    def __call__(self, database, *, relations):
        if self.away:
            raise SourceUnavailableError(address="db:5432/shop", reason="gone")
        self.looks += 1
        moment = Moment(NOON + timedelta(minutes=self.looks), LogPosition(100 * self.looks))
        return moment, self.relations

    def committed(self, settings, topic) -> list[Committed]:
        assert topic == "offsets"
        offset = {"lsn_commit": 100 * self.looks - 10, "snapshot": self.snapshot}
        return [Committed(["shop-connector", {"server": self.server}], offset)]


class NoSpark(LazySession):
    def session(self):
        raise AssertionError("Spark was started")


@pytest.fixture
def kafka(monkeypatch) -> type[Kafka]:
    own = type("OwnKafka", (Kafka,), {})
    monkeypatch.setattr("cdc_lakehouse.bronze.look.Cluster", own)
    return own


@pytest.fixture
def source(monkeypatch) -> Source:
    asked = Source()
    monkeypatch.setattr("cdc_lakehouse.bronze.confirming.moment_of", asked)
    monkeypatch.setattr("cdc_lakehouse.application.committed_offsets.newest_committed", asked.committed)
    monkeypatch.setenv(ENV_CONNECTION_SOURCE, connection(offsets_topic="offsets"))
    return asked


def connection(**extra: str) -> str:
    document = {"host": "db", "login": "reader", "password": "secret", "extra": {"database": "shop", **extra}}
    return json.dumps(document)


@pytest.fixture
def application(kafka, tmp_path, monkeypatch) -> Application:
    monkeypatch.setenv(ENV_CONNECTION_KAFKA, json.dumps({"host": "kafka:9092"}))
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps({"extra": {"root": tmp_path.as_uri()}}))
    for layer in ("bronze", "silver"):
        ledger = ledger_of("orders", topic=TOPIC, end=9, kind=layer)
        write_log(f"{tmp_path.as_uri()}/{layer}/shop/orders", commit_of(ledger))
    document = {
        "version": 1,
        "name": "shop",
        "owner": "tests",
        "schedule": "0 * * * *",
        "start_date": "2026-01-01",
        "tables": [{"name": "orders", "topics": [TOPIC]}],
    }
    pipeline = Pipeline.model_validate(document)
    return Application(
        request=JobRequest(job=Job.BRONZE_INGEST, pipeline="shop", tables=()),
        pipeline=pipeline,
        tables=pipeline.tables,
        lake=Lake(root=tmp_path.as_uri(), pipeline="shop"),
        attempt=new_attempt(NOON),
        spark=NoSpark("none"),
    )


def ingested(application: Application) -> TableResult:
    (result,) = looked(application)
    return result


def said(result: TableResult) -> tuple[str | None, str | None, str | None]:
    return result.valid_through, result.valid_position, result.withheld


def test_an_idle_run_moves_the_claim_without_a_commit(application, source):
    first, second, third = (said(ingested(application)) for _ in range(3))

    assert first == (None, "0/5A", None)
    assert second == ("2026-01-01T12:01:00+00:00", "0/BE", None)
    assert third == ("2026-01-01T12:02:00+00:00", "0/122", None)


def test_silver_says_the_same_once_it_is_level(application, source, monkeypatch):
    monkeypatch.setattr("cdc_lakehouse.silver.claiming.open_cases", lambda uri: 0)
    ingested(application), ingested(application)
    (merged,) = silver_looked(application)

    assert (merged.status, merged.lag_offsets) == (TableStatus.IDLE, 0)
    assert said(merged) == ("2026-01-01T12:01:00+00:00", "0/BE", None)


def test_open_cases_withhold_it_from_an_idle_silver(application, source, monkeypatch):
    monkeypatch.setattr("cdc_lakehouse.silver.claiming.open_cases", lambda uri: 2)
    ingested(application), ingested(application)
    (merged,) = silver_looked(application)

    assert said(merged) == (None, None, "undecodable records")


@pytest.mark.parametrize("stops", ["source", "kafka"])
def test_who_does_not_answer_costs_the_claim_and_not_the_run(application, source, kafka, stops, caplog):
    ingested(application), ingested(application)
    (source if stops == "source" else kafka).away = True
    with caplog.at_level(logging.WARNING):
        result = ingested(application)

    assert (result.status, result.valid_position) == (TableStatus.IDLE, "0/BE")
    (warning,) = [each for each in caplog.records if "complete" in each.message]
    assert "gone" in warning.reason
    assert warning.advice


def test_without_a_connection_nothing_is_claimed_and_the_run_goes_on(application, caplog, monkeypatch):
    monkeypatch.delenv(ENV_CONNECTION_SOURCE, raising=False)
    with caplog.at_level(logging.WARNING):
        result = ingested(application)

    assert (result.status, result.withheld) == (TableStatus.IDLE, NOT_CONFIRMED)
    assert "CDC_LAKEHOUSE_CONN_SOURCE" in caplog.records[-1].reason


def test_a_connection_that_names_no_topic_of_offsets_is_told_so(application, source, monkeypatch, caplog):
    monkeypatch.setenv(ENV_CONNECTION_SOURCE, connection())
    with caplog.at_level(logging.WARNING):
        result = ingested(application)

    assert (result.status, result.withheld) == (TableStatus.IDLE, NOT_CONFIRMED)
    assert "offsets_topic" in caplog.records[-1].reason


def test_a_topic_that_holds_something_else_is_told_so(application, source, monkeypatch, caplog):
    def read(settings, topic):
        raise ValueError("no JSON")

    monkeypatch.setattr("cdc_lakehouse.application.committed_offsets.newest_committed", read)
    with caplog.at_level(logging.WARNING):
        result = ingested(application)

    assert (result.status, result.withheld) == (TableStatus.IDLE, NOT_CONFIRMED)
    assert "offsets holds something else" in caplog.records[-1].reason


@pytest.mark.parametrize("trouble", [{"snapshot": "INITIAL"}, {"server": "billing"}])
def test_a_connector_in_its_snapshot_or_another_one_says_nothing(application, source, trouble):
    for name, value in trouble.items():
        setattr(source, name, value)

    assert said(ingested(application)) == (None, None, NOT_CONFIRMED)


def test_a_dry_run_remembers_nothing(application, source):
    object.__setattr__(application.request, "dry_run", True)
    ingested(application)

    assert said(ingested(application)) == (None, "0/BE", None)


@pytest.mark.parametrize(
    "trouble",
    [
        {"end": 10},
        {"topic_id": "id2"},
    ],
    ids=["records that the table has not read", "a topic that was made again"],
)
def test_what_kafka_says_behind_the_confirmation_must_be_read(application, source, kafka, trouble):
    for name, value in trouble.items():
        setattr(kafka, name, value)
    ingested(application), ingested(application)

    assert said(ingested(application)) == (None, None, NOT_CONFIRMED)


def test_a_topic_that_the_source_has_no_table_for_may_be_anothers(application, source):
    source.relations = frozenset({"public.customers"})
    ingested(application), ingested(application)

    assert said(ingested(application)) == (None, None, NOT_CONFIRMED)


@pytest.mark.parametrize(("cut", "claimed"), [(True, None), (False, "0/BE")])
def test_an_idle_log_with_another_leader_is_asked_whether_it_was_cut(
    application, source, kafka, tmp_path, cut, claimed
):
    marked = ledger_of("orders", topic=TOPIC, end=9)
    progress = marked.sources[f"{TOPIC}@id1"]
    progress[0] = progress[0].marked((9, 1))
    write_log(f"{tmp_path.as_uri()}/bronze/shop/orders", commit_of(marked))
    kafka.epoch, kafka.cut = 2, cut
    ingested(application)

    assert ingested(application).valid_position == claimed


def with_promise(application: Application, promise: str) -> Application:
    table = application.tables[0].model_copy(update={"fresh_within": promise})
    pipeline = application.pipeline.model_copy(update={"tables": (table,)})
    return replace(application, pipeline=pipeline, tables=(table,))


@pytest.fixture
def connect(monkeypatch):
    """A Kafka Connect with one connector whose task is in the given state."""

    def answer(state: str, **settings: str) -> None:
        parts = (Part("the connector", "RUNNING"), Part("task 0", state, ("a.ConnectException",)))
        found = (Connector("shop", {"topic.prefix": "shop", **settings}, parts),)
        monkeypatch.setenv(ENV_CONNECTION_CONNECT, json.dumps({"host": "http://connect:8083"}))
        monkeypatch.setattr("cdc_lakehouse.bronze.confirming.read_connectors", lambda connection: found)

    return answer


def test_a_table_whose_reading_was_ended_breaks_no_promise(application, source, tmp_path, monkeypatch):
    ended = replace(ledger_of("orders", topic=TOPIC, end=9), ended=(f"{TOPIC}@id1",))
    write_log(f"{tmp_path.as_uri()}/bronze/shop/orders", commit_of(ended))
    committed = "cdc_lakehouse.application.committed_offsets.newest_committed"
    monkeypatch.setattr(committed, lambda settings, topic: stuck_at(90))
    promised = with_promise(application, "2m")

    runs = [ingested(promised) for _ in range(4)]

    assert [(run.error, "lacks_since" in run.freshness) for run in runs] == [(None, False)] * 4


def test_a_dead_connector_is_told_by_an_idle_run_and_red_once_the_promise_is_broken(
    application, source, connect, monkeypatch, caplog
):
    promised = with_promise(application, "2m")
    ingested(promised)
    connect("FAILED")
    committed = "cdc_lakehouse.application.committed_offsets.newest_committed"
    monkeypatch.setattr(committed, lambda settings, topic: stuck_at(90))
    with caplog.at_level(logging.WARNING):
        runs = [ingested(promised) for _ in range(3)]

    assert [None if run.error is None else run.error.code for run in runs] == [None, None, "NOT_FRESH"]
    assert [run.freshness["stale_seconds"] for run in runs] == [60.0, 120.0, 180.0]
    assert {run.freshness["connector"] for run in runs} == {
        "connector shop: task 0 is FAILED (ConnectException)"
    }
    assert [each.connector for each in caplog.records if "connector does not run" in each.message] == [
        "connector shop: task 0 is FAILED (ConnectException)"
    ] * 3


def test_a_table_that_the_source_never_had_breaks_no_promise_and_says_that_nobody_judges_it(
    application, source
):
    """Its topic comes from another source; what that connector commits does not compare."""
    source.relations = frozenset()
    promised = with_promise(application, "1m")
    runs = [ingested(promised) for _ in range(4)]

    assert [(run.error, "lacks_since" in run.freshness) for run in runs] == [(None, False)] * 4
    assert {run.freshness["withheld"] for run in runs} == {
        "db:5432/shop has no table public.orders and never confirmed a change of it"
    }


def test_a_table_of_another_database_is_neither_confirmed_nor_judged(application, source, connect):
    """It may have tables of the same names, as a second shard has."""
    connect("RUNNING", **{"database.dbname": "shard_2"})
    promised = with_promise(application, "1m")
    runs = [ingested(promised) for _ in range(4)]

    assert [(run.error, run.valid_position) for run in runs] == [(None, None)] * 4
    assert {run.freshness["withheld"] for run in runs} == {
        "connector shop reads the database shard_2, not db:5432/shop"
    }


def test_a_table_that_the_source_dropped_is_judged_on(application, source):
    promised = with_promise(application, "1m")
    ingested(promised)
    source.relations = frozenset()

    assert "withheld" not in ingested(promised).freshness


def test_a_connector_that_keeps_up_keeps_every_promise(application, source, connect):
    connect("RUNNING")
    promised = with_promise(application, "1m")
    runs = [ingested(promised) for _ in range(4)]

    assert [run.error for run in runs] == [None] * 4
    assert runs[-1].freshness["stale_seconds"] == 0.0


def test_a_promise_without_a_connection_to_the_source_is_refused(application, monkeypatch):
    monkeypatch.delenv(ENV_CONNECTION_SOURCE, raising=False)
    result = ingested(with_promise(application, "1h"))

    assert result.error is not None
    assert (result.error.code, int(result.error.exit_code)) == ("MISSING_CONNECTION", 78)


def test_kafka_connect_that_does_not_answer_costs_nothing_but_the_knowledge(
    application, source, monkeypatch, caplog
):
    def read(connection):
        raise ConnectUnavailableError(url="http://connect:8083", reason="gone")

    monkeypatch.setenv(ENV_CONNECTION_CONNECT, json.dumps({"host": "http://connect:8083"}))
    monkeypatch.setattr("cdc_lakehouse.bronze.confirming.read_connectors", read)
    with caplog.at_level(logging.WARNING):
        result = ingested(application)

    assert (result.error, result.freshness["connector_runs"]) == (None, True)
    assert "not known" in result.freshness["connector"]
    assert [each.reason for each in caplog.records if "the state of the connectors" in each.message] == [
        "Kafka Connect at http://connect:8083 did not answer: gone"
    ]


@pytest.mark.parametrize(
    ("sent", "expected", "code"),
    [
        ("gone", ["__debezium_unavailable_value"], "PLACEHOLDER_DIFFERS"),
        ("__debezium_unavailable_value", ["gone"], "PLACEHOLDER_DIFFERS"),
        ("new", ["gone", "older"], "PLACEHOLDER_DIFFERS"),
        ("hex:676f6e65", ["older", "gone"], None),
        ("${env:PLACEHOLDER}", ["gone"], None),
    ],
    ids=[
        "only the connector has its own",
        "only the pipeline",
        "none of a list",
        "the same bytes",
        "filled in by Connect",
    ],
)
def test_a_table_whose_connector_sends_another_placeholder_is_not_read(
    application, source, connect, sent, expected, code
):
    connect("RUNNING", **{"unavailable.value.placeholder": sent})
    pipeline = application.pipeline.model_copy(update={"unavailable_value_placeholder": tuple(expected)})
    result = ingested(replace(application, pipeline=pipeline))

    assert (None if result.error is None else result.error.code) == code


def stuck_at(position: int) -> list[Committed]:
    return [Committed(["shop-connector", {"server": "shop"}], {"lsn_commit": position})]
