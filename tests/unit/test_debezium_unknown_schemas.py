"""Records whose schema nobody knows: undecodable, alone, with all that can be known of them."""

from __future__ import annotations

from typing import Any

import pytest
from debezium_records import (  # type: ignore[import-not-found]
    event,
    framed,
    kafka_batch,
    key_bytes,
    key_schema,
    plans,
    row,
    value_bytes,
)

from cdc_lakehouse.avro.unknown import UnknownSchemaIdsError
from cdc_lakehouse.debezium.decode import decode

STRANGE = framed(77, key_schema(), {"id": 1})
SOUND = (key_bytes(), value_bytes(event(after=row())))


def decoded(*records: tuple[bytes | None, bytes | None]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = decode(kafka_batch(*records), plans(unknown=frozenset({77}))).to_pylist()
    return rows


@pytest.mark.parametrize("neighbours", [0, 3, 2000])
def test_the_record_alone_is_undecodable_and_keeps_its_key(neighbours):
    *others, found = decoded(*[SOUND] * neighbours, (key_bytes(), STRANGE))

    assert found["decode_error"] == {
        "code": "unknown_schema",
        "detail": "value: schema 77 is nowhere to be found",
    }
    assert (found["key"], found["value_schema_id"], found["raw_value"]) == ({"id": 1}, 77, STRANGE)
    assert [each["decode_error"] for each in others] == [None] * neighbours


def test_an_unknown_key_leaves_the_event_without_one():
    (found,) = decoded((STRANGE, SOUND[1]))

    assert found["decode_error"]["detail"] == "key: schema 77 is nowhere to be found"
    assert found["key"] is None
    assert found["op"] == event()["op"]


def test_another_id_is_asked_for_as_ever():
    with pytest.raises(UnknownSchemaIdsError) as caught:
        decoded((key_bytes(), STRANGE), (key_bytes(), framed(78, key_schema(), {"id": 1})))

    assert caught.value.values == {78}
