"""A table whose topics have no schema of a key: keyless, until one turns up (decision 0025)."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from debezium_records import ROW_FIELDS, columns, envelope_schema, field, key_schema  # type: ignore[import-not-found]

from cdc_lakehouse.avro.unknown import UnknownIds
from cdc_lakehouse.bronze.schemas import KnownSchemas, resolve_subjects, resolve_unknown
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.errors import UnknownSchemaError
from cdc_lakehouse.lake.bronze_schema import columns_in, table_schema
from cdc_lakehouse.registry.writer_schemas import MetSchemas, TopicTexts, WriterSchemas

KEY, VALUE = json.dumps(key_schema()), json.dumps(envelope_schema(ROW_FIELDS))
KEYED: TableColumns = columns()
KEYLESS = TableColumns(key=(), row=KEYED.row)


class ScriptedSchemas:
    """Topic -> its texts; any schema is known by its id."""

    def __init__(self, **topics: TopicTexts) -> None:
        self._topics = topics

    def of_topic(self, topic: str) -> TopicTexts:
        return self._topics[topic]

    def of_records(self, _topics: Any, *, keys: frozenset[int], values: frozenset[int]) -> MetSchemas:
        return MetSchemas(dict.fromkeys(keys, KEY), dict.fromkeys(values, VALUE), frozenset(), frozenset())

    def unknown_for(self, _refs: Any, _span: Any) -> frozenset[int]:
        return frozenset()


WITHOUT_KEY = TopicTexts(keys={}, values={9: VALUE})
WITH_KEY = TopicTexts(keys={7: KEY}, values={9: VALUE})


def resolved(
    *topics: str, existing: TableColumns | None = None, **texts: TopicTexts
) -> tuple[WriterSchemas, KnownSchemas]:
    schemas = cast("WriterSchemas", ScriptedSchemas(**texts))
    return schemas, resolve_subjects(schemas, topics, table="orders", existing=existing)


def test_topics_without_a_key_are_a_table_without_one():
    _, known = resolved("t", t=WITHOUT_KEY)

    assert (known.columns, known.key_text, dict(known.texts)) == (KEYLESS, None, {9: VALUE})


@pytest.mark.parametrize("topics", [("t", "u"), ("u", "t")])
def test_one_topic_with_a_key_gives_it_to_the_table(topics):
    _, known = resolved(*topics, t=WITHOUT_KEY, u=WITH_KEY)

    assert (known.columns, dict(known.texts)) == (KEYED, {7: KEY, 9: VALUE})


def test_a_table_without_a_key_gets_the_first_one_that_the_registry_tells():
    _, known = resolved("t", existing=KEYLESS, t=WITH_KEY)

    assert known.columns == KEYED


def test_a_table_without_a_key_gets_the_first_one_that_a_record_names():
    schemas, known = resolved("t", t=WITHOUT_KEY)

    grown = resolve_unknown(schemas, known, UnknownIds(frozenset({7}), frozenset()), batch={})

    assert (grown.columns, dict(grown.texts)) == (KEYED, {7: KEY, 9: VALUE})


def test_the_key_that_a_record_gave_stays_with_the_values_behind_it():
    schemas, known = resolved("t", t=WITHOUT_KEY)
    known = resolve_unknown(schemas, known, UnknownIds(frozenset({7}), frozenset()), batch={})
    more = json.dumps(envelope_schema([*ROW_FIELDS, field("late", "int")]))

    grown = known.with_value(more)

    assert (grown.columns.key, grown.columns.row[-1].name) == (KEYED.key, "late")


def test_a_table_with_a_key_whose_subject_is_gone_waits():
    with pytest.raises(UnknownSchemaError) as caught:
        resolved("t", existing=KEYED, t=WITHOUT_KEY)

    assert caught.value.schemas == "subjects t-key, t-value"


@pytest.mark.parametrize("table", [KEYED, KEYLESS])
def test_bronze_tells_the_columns_that_it_was_made_for(table):
    assert columns_in(table_schema(table)) == table


def test_bronze_of_a_table_without_a_key_has_no_column_of_that_name():
    assert "key" not in table_schema(KEYLESS).names
