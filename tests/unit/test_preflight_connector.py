"""Each setting of a connector that will hurt is a line with its way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.connect.connectors import Connector, Part
from cdc_lakehouse.preflight.connector import connector_findings, missing_connector
from cdc_lakehouse.preflight.findings import Finding, Level

GOOD: dict[str, str] = json.loads(
    (Path(__file__).parents[2] / "include/docker/connector.json").read_text(encoding="utf-8")
)
DOCUMENT = {
    "version": 1,
    "name": "shop",
    "owner": "tests",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01",
    "tables": [{"name": "orders", "topics": ["shop.public.orders"]}],
}
PIPELINE = Pipeline.model_validate(DOCUMENT)


def findings(*absent: str, state: str = "RUNNING", **settings: str) -> list[Finding]:
    """Of the connector of this repository with these settings instead; `_` stands for a dot."""
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    known = {name: value for name, value in {**GOOD, **changed}.items() if name not in absent}
    connector = Connector("shop", known, (Part("the connector", "RUNNING"), Part("task 0", state)))
    return list(connector_findings(connector, PIPELINE))


def test_the_connector_of_this_repository_is_one_line():
    assert [(each.level, each.sentence) for each in findings()] == [(Level.OK, "runs, topics shop.*")]


@pytest.mark.parametrize(
    ("found", "level", "words"),
    [
        (findings(state="FAILED"), Level.PROBLEM, "task 0 is FAILED"),
        (findings("skipped.operations"), Level.WARNING, "(the default): TRUNCATE of the source"),
        (findings(skipped_operations="t,d"), Level.WARNING, "TRUNCATE, DELETE of the source"),
        (findings(errors_tolerance="all"), Level.WARNING, "dropped silently"),
        (findings(producer_override_acks="1"), Level.WARNING, "Kafka may lose records"),
        (findings(slot_drop_on_stop="true"), Level.WARNING, "while the connector is stopped is lost"),
        (findings(snapshot_mode="no_data"), Level.WARNING, "rows from before"),
        (findings(snapshot_mode="always"), Level.NOTE, "opens a source epoch"),
        (findings(decimal_handling_mode="double"), Level.WARNING, "decimals lose digits"),
        (findings(time_precision_mode="connect"), Level.WARNING, "below a millisecond"),
        (findings("heartbeat.interval.ms"), Level.WARNING, "has no heartbeat"),
        (findings(heartbeat_interval_ms="0"), Level.WARNING, "has no heartbeat"),
        (findings("heartbeat.action.query"), Level.NOTE, "writes nothing to the source"),
        (findings("signal.data.collection"), Level.WARNING, "no snapshot can be asked for"),
        (findings(signal_data_collection="ops.signals"), Level.WARNING, "ops.signals"),
        (findings(value_converter="org.apache.kafka.connect.json.JsonConverter"), Level.PROBLEM, "no Avro"),
        (findings("key.converter"), Level.NOTE, "setting of the Kafka Connect worker counts"),
        (findings("value.converter.apicurio.registry.as-confluent"), Level.WARNING, "eight bytes"),
        (findings(unavailable_value_placeholder="gone"), Level.PROBLEM, "sends 'gone'"),
        (
            findings(transforms="flat", transforms_flat_type="io.debezium.ExtractNewRecordState"),
            Level.PROBLEM,
            "removes the envelope",
        ),
        (
            findings(transforms="route", transforms_route_type="org.apache.kafka.RegexRouter"),
            Level.NOTE,
            "changes records",
        ),
    ],
)  # fmt: skip
def test_a_setting_that_hurts_is_told_with_its_way_out(found, level, words):
    (finding,) = [each for each in found if each.level is not Level.OK]

    assert (finding.level, finding.subject) == (level, "connector shop")
    assert words in finding.sentence
    assert finding.advice


def test_a_prefix_without_a_connector_is_told_with_those_that_there_are():
    finding = missing_connector("billing", ["shop"])

    assert finding.level is Level.WARNING
    assert "topic.prefix is billing; it has shop" in finding.sentence
