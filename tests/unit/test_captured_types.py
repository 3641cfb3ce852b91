"""Every column type of the real connector, decoded both ways, beside fastavro and PostgreSQL itself.

The records are those that `tests/stack/capture_types.py` took from a real chain (`cdc-semantics` §7, §12).
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from avro_columns import columns_read, fastavro_takes  # type: ignore[import-not-found]
from debezium_damage import (  # type: ignore[import-not-found]
    FASTAVRO_IS_LAX,
    SOUND,
    batch_decoded_both_ways,
    bit_flips,
    first_difference,
    truncations,
)
from debezium_records import kafka_batch, raw_schema  # type: ignore[import-not-found]

from cdc_lakehouse.avro.writer import writer_schema
from cdc_lakehouse.debezium.columns import unknown_types
from unit.captured_records import Topic, topics  # type: ignore[import-not-found]
from unit.postgres_differs import Difference, differences  # type: ignore[import-not-found]
from unit.postgres_known import KNOWN, covering  # type: ignore[import-not-found]

TOPICS = pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.name)


@TOPICS
def test_records_are_the_same_both_ways(topic):
    assert first_difference(batch_decoded_both_ways(topic.batch(copies=3), topic.plans())) is None


@TOPICS
def test_records_are_the_same_both_ways_with_null_for_what_is_out_of_range(topic):
    plans = topic.plans(null_if_out_of_range=True)
    assert first_difference(batch_decoded_both_ways(topic.batch(copies=3), plans)) is None


@pytest.mark.parametrize("side", ["key", "value"])
@TOPICS
def test_raw_values_are_those_of_fastavro(topic, side):
    by_id: dict[int, list[bytes]] = {}
    for number, payload in topic.frames(side):
        by_id.setdefault(number, []).append(payload)
    for number, payloads in by_id.items():
        schema = json.loads(topic.schemas[number])
        parsed = fastavro.parse_schema(raw_schema(schema))
        wanted = [fastavro.schemaless_reader(io.BytesIO(payload), parsed) for payload in payloads]
        assert repr([writer_schema(topic.schemas[number]).read(each) for each in payloads]) == repr(wanted)
        found, sound = columns_read(schema, payloads)
        assert all(sound) or topic.relation.startswith("toasted"), (
            "but long lists of few rows (`avro.repeated`)"
        )
        pairs = zip(found.to_pylist(), wanted, sound, strict=True)
        different = [
            (one, other)
            for one, other, is_sound in pairs
            if is_sound and repr(one) != repr(_with_pairs(other))
        ]
        assert different == []


def _with_pairs(value: Any) -> Any:
    """Maps as Arrow gives them; the rows of these tables have no nested record but with fixed fields."""
    if isinstance(value, dict):
        return {name: _entries(name, each) for name, each in value.items()}
    return [_with_pairs(each) for each in value] if isinstance(value, list) else value


def _entries(name: str, value: Any) -> Any:
    if isinstance(value, dict) and name in ("pairs", "extensions"):
        return list(value.items())
    return _with_pairs(value)


@TOPICS
def test_no_type_is_unknown(topic):
    texts = {topic.schemas[number] for number, _ in topic.frames("value")}
    assert [unknown_types(text, table=topic.relation) for text in texts] == [{}] * len(texts)


@TOPICS
def test_typed_values_are_what_postgresql_said(topic):
    assert [found for found in differences(topic) if not covering(found)] == []


def test_every_known_inequality_occurs():
    found: list[Difference] = [each for topic in topics() for each in differences(topic)]
    assert [known for known in KNOWN if not any(known.covers(each) for each in found)] == []


DAMAGED = {
    ("precise", "numbers"): 1,
    ("precise", "times"): 1,
    ("precise", "vectors"): 1,
    ("precise", "shapes"): 1,
    ("precise", "contrib"): 1,
    ("precise", "texts"): 1,
    ("precise", "arrays"): 2,
    ("iso", "times"): 1,
    ("structured", "times"): 1,
}
"""Of the first record of these every truncation, and of its bits every n-th, flipped."""
DAMAGES = pytest.mark.parametrize(
    "topic",
    [topic for topic in topics() if (topic.profile, topic.relation) in DAMAGED],
    ids=lambda topic: topic.name,
)


def _damaged(topic: Topic) -> list[bytes]:
    whole = topic.records[0]["value"]
    flips = list(bit_flips(whole))[:: DAMAGED[topic.profile, topic.relation]]
    return [*(each for each in truncations(whole) if len(each) >= 5), *flips]


@DAMAGES
def test_damaged_records_are_the_same_both_ways_and_for_fastavro(topic):
    damaged = _damaged(topic)
    batch = kafka_batch(*((topic.records[0]["key"], each) for each in damaged))
    found = batch_decoded_both_ways(batch, topic.plans())
    assert first_difference(found) is None
    number = int.from_bytes(damaged[0][1:5], "big")
    parsed = fastavro.parse_schema(raw_schema(json.loads(topic.schemas[number])))
    lax = set()
    for data, error in zip(damaged, found[0].column("decode_error").to_pylist(), strict=True):
        ours = error is None or error["code"] in SOUND
        if ours != fastavro_takes(parsed, data[5:]):
            assert not ours, "taken, but not by fastavro"
            lax.add(error["detail"].split(": ")[-1])
    assert lax <= FASTAVRO_IS_LAX
