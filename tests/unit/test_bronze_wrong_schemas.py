"""Records that name schemas which cannot be theirs: undecodable alone, and no table changes for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from debezium_records import (  # type: ignore[import-not-found]
    ROW_FIELDS,
    columns,
    envelope_schema,
    event,
    field,
    framed,
    kafka_batch,
    key_bytes,
    key_schema,
    plans,
    row,
    value_bytes,
)

from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.avro.unknown import UnknownIds, UnknownSchemaIdsError
from cdc_lakehouse.bronze.schemas import KnownSchemas, resolve_subjects, resolve_unknown
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.errors import UnsupportedTypeError
from cdc_lakehouse.registry.writer_schemas import MetSchemas, TopicTexts, WriterSchemas

KEY, VALUE = json.dumps(key_schema()), json.dumps(envelope_schema(ROW_FIELDS))
OTHER_KEY = json.dumps({**key_schema("string"), "namespace": "shop.public.other"})
OTHER_VALUE = json.dumps(envelope_schema([field("id", "long"), field("stray", "string")]))
FLAT = json.dumps({"type": "record", "name": "Flat", "fields": [field("id", "long")]})
TOO_WIDE = json.dumps(
    {"type": "record", "name": "W", "fields": [field(f"c{place}", "int") for place in range(2001)]}
)
NO_DECIMAL = {"type": "string", "connect.name": "org.apache.kafka.connect.data.Decimal"}
KEYED: TableColumns = columns()
KEYLESS = TableColumns(key=(), row=KEYED.row)


class ScriptedSchemas:
    """One topic. Of the schemas that records name, those in `own` are of the topic."""

    def __init__(self, *, keys: Mapping[SchemaRef, str], own: Mapping[SchemaRef, str]) -> None:
        self._keys, self._own = keys, own
        self.asked: list[str] = []

    def of_topic(self, _topic: str) -> TopicTexts:
        return TopicTexts(keys=self._keys, values={9: VALUE})

    def of_records(
        self, topics: Any, *, keys: frozenset[SchemaRef], values: frozenset[SchemaRef]
    ) -> MetSchemas:
        self.asked = list(topics)
        return MetSchemas(
            {ref: self._own[ref] for ref in keys & self._own.keys()},
            {ref: self._own[ref] for ref in values & self._own.keys()},
            keys - self._own.keys(),
            values - self._own.keys(),
        )

    def unknown_for(self, _refs: Any, _span: Any) -> frozenset[SchemaRef]:
        return frozenset()


def resolved(
    *,
    keys: Mapping[SchemaRef, str],
    met_keys: Any = (),
    met_values: Any = (),
    own: Mapping[SchemaRef, str] | None = None,
) -> KnownSchemas:
    schemas = cast("WriterSchemas", ScriptedSchemas(keys=keys, own=own or {}))
    known = resolve_subjects(schemas, ("t",), table="orders", existing=None)
    return resolve_unknown(
        schemas, known, UnknownIds(frozenset(met_keys), frozenset(met_values)), batch={"t@1": {0: (0, 1)}}
    )


def test_a_stray_envelope_adds_no_column():
    known = resolved(keys={7: KEY}, met_values=[30])

    assert (known.columns, sorted(known.wrong_values), list(known.texts)) == (KEYED, [7, 30], [7, 9])


def test_a_stray_key_makes_no_keyless_table_keyed():
    known = resolved(keys={}, met_keys=[30])

    assert (known.columns, sorted(known.wrong_keys)) == (KEYLESS, [9, 30])


@pytest.mark.parametrize("text", [FLAT, TOO_WIDE, '"string"', "no schema"])
def test_a_schema_of_the_topic_that_is_no_event_changes_nothing(text):
    known = resolved(keys={7: KEY}, met_values=[30], own={30: text})

    assert (known.columns, known.texts[30], list(known.wrong_values)) == (KEYED, text, [7])


def test_a_key_of_the_topic_that_is_no_record_makes_no_keyless_table_keyed():
    assert resolved(keys={}, met_keys=[30], own={30: '"string"'}).columns == KEYLESS


def test_a_key_that_is_no_record_does_not_stand_for_the_one_before_it():
    assert resolved(keys={7: KEY, 8: '"string"'}, met_values=[30]).columns == KEYED


def test_a_column_of_the_topic_that_cannot_be_stored_stops_the_table():
    """Leaving it out is a way on; taking every record from here on for undecodable is none."""
    own: dict[SchemaRef, str] = {30: json.dumps(envelope_schema([*ROW_FIELDS, field("odd", NO_DECIMAL)]))}

    with pytest.raises(UnsupportedTypeError) as caught:
        resolved(keys={7: KEY}, met_values=[30], own=own)

    assert caught.value.column == "odd"


def test_a_schema_of_one_side_is_judged_for_the_other_on_its_own():
    """First met in a key, where it is strange, and then in a value, where it may belong."""
    known = resolved(keys={7: KEY}, met_keys=[30])

    assert (sorted(known.wrong_keys), sorted(known.wrong_values)) == ([9, 30], [7])


def test_a_schema_may_belong_to_any_topic_of_the_table():
    """Judged for one batch, it counts for all: of the topics that have no record in this one too."""
    scripted = ScriptedSchemas(keys={7: KEY}, own={})
    known = resolve_subjects(cast("WriterSchemas", scripted), ("t", "u"), table="orders", existing=None)

    ids = UnknownIds(frozenset(), frozenset({30}))
    resolve_unknown(cast("WriterSchemas", scripted), known, ids, batch={"t@1": {0: (0, 1)}})

    assert scripted.asked == ["t", "u"]


SOUND = (key_bytes(), value_bytes(event(after=row())))
STRAY_VALUE = framed(
    30, {"type": "record", "name": "S", "fields": [field("stray", "string")]}, {"stray": "x"}
)
STRAY_KEY = framed(31, key_schema("string"), {"id": "x"})


def decoded(*records: tuple[bytes | None, bytes | None]) -> list[dict[str, Any]]:
    made = plans(wrong_keys=frozenset({31, 9}), wrong_values=frozenset({30, 7}))
    rows: list[dict[str, Any]] = decode(kafka_batch(*records), made).to_pylist()
    return rows


@pytest.mark.parametrize("neighbours", [0, 3, 2000])
def test_a_record_with_a_stray_value_is_undecodable_alone_and_keeps_its_key(neighbours):
    *others, found = decoded(*[SOUND] * neighbours, (key_bytes(), STRAY_VALUE))

    detail = "value: schema 30 belongs to no value of this table's topics"
    assert found["decode_error"] == {"code": "wrong_schema", "detail": detail}
    assert (found["key"], found["value_schema_id"], found["raw_value"]) == ({"id": 1}, 30, STRAY_VALUE)
    assert [each["decode_error"] for each in others] == [None] * neighbours


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    ("record", "code"),
    [
        ((STRAY_KEY, SOUND[1]), "wrong_schema"),
        ((SOUND[1], SOUND[1]), "wrong_schema"),
        ((SOUND[0], SOUND[0]), "wrong_schema"),
        ((STRAY_KEY, None), "wrong_schema"),
        (SOUND, None),
    ],
)
def test_each_side_of_a_record_has_schemas_of_its_own(record, code):
    (found,) = decoded(record)

    assert found["decode_error"] is None if code is None else found["decode_error"]["code"] == code


def test_a_schema_that_is_strange_to_the_other_side_only_is_asked_for():
    with pytest.raises(UnknownSchemaIdsError) as caught:
        decoded((framed(30, key_schema(), {"id": 1}), SOUND[1]))

    assert (list(caught.value.keys), list(caught.value.values)) == ([30], [])
