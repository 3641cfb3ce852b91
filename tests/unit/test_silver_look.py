"""What a look at a table refuses before any merge starts: logs and archived schemas, no Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from debezium_records import envelope_schema, field  # type: ignore[import-not-found]
from delta_logs import commit_of, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import EpochBeyondBoundsError, LogTornError, UnprovenSourceError
from cdc_lakehouse.lake.damage import heal_table
from cdc_lakehouse.lake.ledger import Kind
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.schema_archive import SchemaArchive, archived_events
from cdc_lakehouse.lake.state import STEPS_ID
from cdc_lakehouse.registry.versions import TopicVersions
from cdc_lakehouse.silver.look import MergeTask, look_at

TOPIC = "shop.public.orders"


def value_schema(connector: str) -> str:
    envelope = envelope_schema([field("id", "long")])
    record = next(each for each in envelope["fields"] if each["name"] == "source")
    record["type"] = {**record["type"], "namespace": f"io.debezium.connector.{connector}"}
    return json.dumps(envelope)


@pytest.fixture
def application(tmp_path: Path) -> Application:
    pipeline = Pipeline.model_validate(
        {
            "version": 1,
            "name": "shop",
            "owner": "tests",
            "schedule": "0 * * * *",
            "start_date": date(2026, 1, 1),
            "tables": [{"name": "orders", "topics": [TOPIC]}],
        }
    )
    return Application(
        request=JobRequest(job=Job.SILVER_MERGE, pipeline="shop", tables=()),
        pipeline=pipeline,
        tables=pipeline.tables,
        lake=Lake(root=tmp_path.as_uri(), pipeline="shop"),
        attempt="20260110T110000Z-00000001",
        spark=cast(LazySession, None),
    )


def archive(application: Application, *schemas: str) -> None:
    kept = SchemaArchive(application.lake.schemas("registry"))
    for number, text in enumerate(schemas, 1):
        kept.keep(number, text, subjects=[f"{TOPIC}-value"])
    versions: dict[SchemaRef, int | None] = {number: number for number in range(1, len(schemas) + 1)}
    kept.keep_topic(TOPIC, TopicVersions(keys={}, values=versions))


def test_bronze_of_a_connector_that_was_never_proven_is_not_merged(application):
    write_log(application.lake.bronze("orders"), commit_of(ledger_of("orders", topic=TOPIC, end=5)))
    archive(application, value_schema("postgresql"), value_schema("mariadb"))

    with pytest.raises(UnprovenSourceError) as caught:
        look_at(application, application.tables[0])

    assert (caught.value.table, caught.value.connector) == ("orders", "mariadb")


def test_a_schema_that_is_no_change_event_says_nothing_of_the_connector(application):
    archive(application, json.dumps({"type": "record", "name": "Beat", "fields": []}), '"string"')

    assert archived_events(application.lake.archives, TOPIC) == []


def test_an_epoch_that_no_column_holds_is_told_before_spark_fails_on_it(application):
    bronze = ledger_of("orders", topic=TOPIC, end=5)
    source = f"{TOPIC}@id1"
    progress = Progress(floor=0, end=5, epochs=((3, 2**63),))
    write_log(application.lake.bronze("orders"), commit_of(replace(bronze, sources={source: {0: progress}})))

    with pytest.raises(EpochBeyondBoundsError) as caught:
        look_at(application, application.tables[0])

    assert (caught.value.epoch, caught.value.highest) == (2**63, 2**63 - 1)


def test_tombstones_that_were_set_aside_are_made_again_from_all_that_silver_applied(application):
    lake, keyed = application.lake, application.tables[0].model_copy(update={"key": ("offset",)})
    write_log(lake.bronze("orders"), commit_of(ledger_of("orders", topic=TOPIC, end=5)))
    write_log(lake.silver("orders"), commit_of(ledger_of("orders", topic=TOPIC, end=3, kind=Kind.SILVER)))
    step: list[dict[str, object]] = [{"txn": {"appId": STEPS_ID, "version": 1, "lastUpdated": 1}}]
    write_log(lake.tombstones("orders"), step)
    torn = Path(lake.tombstones("orders").removeprefix("file://"), "_delta_log", f"{1:020d}.json")
    whole = torn.read_bytes()
    before = look_at(application, keyed)
    torn.write_bytes(whole[:10])
    with pytest.raises(LogTornError):
        look_at(application, keyed)

    heal_table(lake, "orders")
    task = look_at(application, keyed)
    write_log(lake.tombstones("orders"), step)
    after = look_at(application, keyed)

    assert isinstance(before, MergeTask)
    assert isinstance(task, MergeTask)
    assert isinstance(after, MergeTask)
    assert (task.buries_again, task.read_again) == (True, {f"{TOPIC}@id1": {0: ((0, 3),)}})
    assert [(each.buries_again, each.read_again) for each in (before, after)] == [(False, {})] * 2
