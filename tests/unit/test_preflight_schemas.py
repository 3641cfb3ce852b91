"""What the registry says of a topic becomes lines that name the columns concerned."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from cdc_lakehouse.config.models import Mode, Pipeline, Table
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.preflight.findings import Level
from cdc_lakehouse.preflight.inequalities import unseen_finding
from cdc_lakehouse.preflight.schemas import (
    TopicSchemas,
    read_schemas,
    schema_findings,
    shared_key_findings,
    topic_schema_findings,
)
from cdc_lakehouse.registry.versions import Version

KEY = json.dumps({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]})


def envelope(*columns: Mapping[str, object]) -> str:
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}, *columns]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    return json.dumps(
        {
            "type": "record",
            "name": "Envelope",
            "fields": [
                {"name": "before", "type": ["null", row], "default": None},
                {"name": "after", "type": ["null", "Value"], "default": None},
                {"name": "source", "type": source},
                {"name": "op", "type": "string"},
            ],
        }
    )


def test_a_dropped_column_may_be_of_any_type_and_must_exist():
    bad = {"type": "bytes", "logicalType": "decimal", "scale": "x"}
    schemas = TopicSchemas(KEY, envelope({"name": "odd", "type": bad}))
    assert [each.exit_code for each in topic_schema_findings("orders", "t", schemas)] == [ExitCode.CONFIG]
    found = list(topic_schema_findings("orders", "t", schemas, dropped=frozenset({"odd", "od"})))
    assert "columns 1, key id" in found[0].sentence
    assert [each.sentence for each in found[1:]] == [
        "drop_columns names od, which the newest schema does not have"
    ]


@pytest.mark.parametrize(
    ("settings", "levels"),
    [
        ({}, [Level.WARNING]),
        ({"topics": ("a",)}, []),
        ({"topic_column": "shard"}, []),
        ({"shared_keys": "one_row"}, []),
        ({"mode": "append"}, []),
    ],
)
def test_a_table_of_several_topics_is_asked_what_a_shared_key_is(settings, levels):
    table = Table.model_validate({"name": "orders", "topics": ("a", "b"), **settings})

    assert [each.level for each in shared_key_findings(table)] == levels


class ScriptedRegistry:
    """Subjects with the texts of their versions, the oldest first."""

    def __init__(self, **subjects: list[str]) -> None:
        self._subjects = {name.replace("_", "-"): texts for name, texts in subjects.items()}

    def latest(self, subject: str) -> Version | None:
        texts = self._subjects.get(subject, [])
        return Version(subject, len(texts), 0, texts[-1]) if texts else None


def test_a_table_that_can_be_stored_is_one_line():
    findings = list(topic_schema_findings("orders", "t", TopicSchemas(KEY, envelope())))

    assert [(found.level, found.sentence) for found in findings] == [("ok", "columns 1, key id")]


def test_a_column_that_cannot_be_stored_is_a_problem_with_its_name():
    odd = {"type": "string", "connect.name": "org.apache.kafka.connect.data.Decimal"}
    findings = list(
        topic_schema_findings("orders", "t", TopicSchemas(KEY, envelope({"name": "at", "type": odd})))
    )

    assert [found.exit_code for found in findings] == [ExitCode.CONFIG]
    assert "column at of orders" in findings[0].sentence


def test_null_becomes_default_is_a_warning():
    value = envelope({"name": "status", "type": ["string", "null"], "default": "new"})
    findings = list(topic_schema_findings("orders", "t", TopicSchemas(KEY, value)))

    assert [(found.level, found.sentence) for found in findings] == [
        ("ok", "columns 2, key id"),
        (
            "warning",
            "null-becomes-default in status: NULL becomes the column's default;"
            " 1970 where that is a function of time",
        ),
    ]


def test_rare_values_that_differ_are_one_note_and_usual_ones_a_warning_each():
    columns = (
        {"name": "at", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
        {"name": "span", "type": {"type": "long", "connect.name": "io.debezium.time.MicroDuration"}},
    )
    findings = list(topic_schema_findings("orders", "t", TopicSchemas(KEY, envelope(*columns))))

    assert [(found.level, found.sentence) for found in findings[1:]] == [
        ("warning", "interval-months in span: 1 mon becomes 30.4375 days in microseconds"),
        ("note", "rare values will differ: infinity in at; far-moments in at; long-interval in span"),
    ]


def test_a_dropped_column_may_lose_its_values():
    value = envelope({"name": "status", "type": ["string", "null"], "default": "new"})
    dropped = frozenset({"status"})

    assert len(list(topic_schema_findings("orders", "t", TopicSchemas(KEY, value), dropped=dropped))) == 1


def test_what_no_schema_shows_is_told():
    found = unseen_finding()

    assert found.level == "note"
    assert {"no-field", "generated", "name"} <= set(found.sentence.split(": ")[1].split(", "))


def test_a_topic_without_a_value_subject_is_not_checked_and_says_so():
    (finding,) = topic_schema_findings("orders", "t", TopicSchemas(None, None))

    assert (finding.level, finding.sentence) == (
        "warning",
        "the registry has no subject t-value, so its columns were not checked",
    )


def test_silver_of_a_topic_without_a_key_has_a_row_per_event():
    findings = list(topic_schema_findings("orders", "t", TopicSchemas(None, envelope())))

    assert [(found.level, found.sentence) for found in findings] == [
        ("ok", "columns 1, key none"),
        ("note", "the registry has no subject t-key: silver gets one row per event (mode: append)"),
    ]


def test_a_topic_without_a_key_cannot_be_upserted():
    schemas = TopicSchemas(None, envelope())
    _, finding = topic_schema_findings("orders", "t", schemas, mode=Mode.UPSERT)

    assert (finding.level, finding.exit_code) == ("problem", ExitCode.CONFIG)
    assert finding.sentence == "orders has no key, and the table says `mode: upsert`"


def test_the_newest_schemas_of_a_topic_are_read_by_subject():
    registry = ScriptedRegistry(t_key=[KEY], t_value=["old", "new"])

    assert read_schemas(registry, "t") == TopicSchemas(key=KEY, value="new")
    assert read_schemas(registry, "u") == TopicSchemas(key=None, value=None)


def test_a_type_that_nobody_knows_is_stored_and_warned_of_by_column():
    money = {"type": "string", "connect.name": "com.acme.Money"}
    schemas = TopicSchemas(KEY, envelope({"name": "price", "type": money}))
    findings = list(topic_schema_findings("orders", "t", schemas))

    assert [found.level for found in findings] == ["ok", "warning"]
    assert findings[1].sentence == "price has a type that this release does not know: com.acme.Money (string)"


@pytest.mark.parametrize(
    ("key", "own_key", "level", "sentence"),
    [
        (KEY, ["id"], "ok", "silver has one row per id, which every message key tells"),
        (KEY, ["code"], "note", "silver has one row per code, which the message key does not tell"),
        (None, ["code"], "note", "silver has one row per code, which the message key does not tell"),
        (KEY, ["cod"], "warning", "key names cod, which the newest schema does not have"),
    ],
)
def test_a_key_that_the_table_names_is_told_with_what_it_takes(key, own_key, level, sentence):
    schemas = TopicSchemas(key, envelope({"name": "code", "type": "string"}))
    found = list(topic_schema_findings("orders", "t", schemas, own_key=own_key))

    assert (found[1].level, found[1].sentence) == (level, sentence)


def test_a_connector_that_was_never_proven_is_a_problem_unless_the_pipeline_accepts_it():
    registry = ScriptedRegistry(t_key=[KEY], t_value=[envelope()])
    document = {
        "version": 1,
        "name": "shop",
        "owner": "tests",
        "schedule": "0 * * * *",
        "start_date": "2026-01-01",
        "tables": [{"name": "orders", "topics": ["t"]}],
    }
    refused = Pipeline.model_validate(document)
    accepted = Pipeline.model_validate({**document, "unproven_source": True})

    (problem,) = [each for each in schema_findings(refused, registry) if each.level is Level.PROBLEM]
    assert "`unproven_source: true`" in problem.advice
    assert problem.exit_code is ExitCode.CONFIG
    assert [each for each in schema_findings(accepted, registry) if each.level is Level.PROBLEM] == []
