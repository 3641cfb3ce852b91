"""However a record is damaged, columns say of it what the strict reader of single records says."""

from __future__ import annotations

import random

import fastavro
import pyarrow as pa
import pytest
from avro_columns import fastavro_takes  # type: ignore[import-not-found]
from debezium_damage import (  # type: ignore[import-not-found]
    EVENTS,
    FASTAVRO_IS_LAX,
    SCHEMA,
    batch_decoded_both_ways,
    bit_flips,
    decoded_both_ways,
    first_difference,
    key_bytes,
    mutated,
    told,
    truncations,
    value_bytes,
)
from debezium_records import HEADERS, kafka_batch, raw_schema  # type: ignore[import-not-found]


def test_sound_records_are_the_same_both_ways():
    records = [(key_bytes(number), value_bytes(each)) for number, each in enumerate(EVENTS * 3)]
    found = decoded_both_ways([*records, (key_bytes(), None), (None, value_bytes(EVENTS[4]))])
    assert found[0].column("decode_error").null_count == len(records) + 2
    assert first_difference(found) is None


@pytest.mark.parametrize("value", EVENTS)
def test_every_truncation_is_bad_and_its_neighbours_are_not(value):
    whole = value_bytes(value)
    records = [(key_bytes(), each) for cut in truncations(whole) for each in (cut, whole)]
    found = decoded_both_ways(records)
    faults = found[0].column("decode_error").is_valid().to_pylist()
    assert faults == [True, False] * len(whole)
    assert first_difference(found) is None


@pytest.mark.parametrize("value", EVENTS)
def test_every_flipped_bit_gives_the_same_row_both_ways(value):
    found = decoded_both_ways([(key_bytes(), each) for each in bit_flips(value_bytes(value))])
    assert first_difference(found) is None


@pytest.mark.parametrize("value", EVENTS)
def test_fastavro_agrees_except_where_it_is_lax(value):
    parsed = fastavro.parse_schema(raw_schema(SCHEMA))
    damaged = [*truncations(value_bytes(value)), *bit_flips(value_bytes(value))]
    damaged = [each for each in damaged if len(each) >= 5]
    (found, _) = decoded_both_ways([(key_bytes(), each) for each in damaged])
    lax = set()
    semantic = {"value_out_of_range", "bad_value"}
    for data, error in zip(damaged, found.column("decode_error").to_pylist(), strict=True):
        ours = error is None or error["code"] in semantic
        if ours != fastavro_takes(parsed, data[5:]):
            assert not ours, "taken, but not by fastavro"
            lax.add(error["detail"].split(": ")[-1])
    assert lax <= FASTAVRO_IS_LAX


def test_every_truncation_and_flipped_bit_of_a_key():
    whole = key_bytes(2**40)
    damaged = [*truncations(whole), *bit_flips(whole)]
    found = decoded_both_ways([(each, value_bytes(EVENTS[0])) for each in damaged])
    assert first_difference(found) is None


def test_mutated_and_sound_records_in_one_batch():
    chance = random.Random(11)  # noqa: S311
    sound = [value_bytes(each) for each in EVENTS]
    records = [
        (key_bytes(number), mutated(each, chance) if number % 3 else each)
        for number, each in enumerate(sound[number % len(sound)] for number in range(3_000))
    ]
    assert first_difference(decoded_both_ways(records)) is None


def test_noise_in_any_place():
    chance = random.Random(12)  # noqa: S311
    head = value_bytes(EVENTS[0])[:5]
    records = []
    for _ in range(3_000):
        noise = chance.randbytes(chance.randrange(60))
        records.append(
            chance.choice(
                [(key_bytes(), head + noise), (key_bytes()[:5] + noise, None), (b"{" + noise, noise[:1])]
            )
        )
    assert first_difference(decoded_both_ways(records)) is None


def test_raw_always_and_the_cap_are_the_same_both_ways():
    records = [(key_bytes(), value_bytes(each)) for each in EVENTS]
    assert first_difference(decoded_both_ways(records, told(keep_raw=True, max_record_bytes=300))) is None


def test_ids_in_headers_leave_the_bytes_to_the_payload():
    value, number = value_bytes(EVENTS[0]), b"\x00\x00\x00\x00\x09"
    cases: list[tuple[bytes, list[tuple[str, bytes | None]], bool]] = [
        (value[5:], [("other", b"x"), ("__value_schema_id", b"zz"), ("__value_schema_id", number)], True),
        (value, [("other", b"x")], True),
        (value, [], True),
        (value[5:], [("__value_schema_id", b"\x01" + b"g" * 16)], False),
        (value[5:], [("__value_schema_id", None)], False),
        (value, [("__value_schema_id", number)], False),
    ]
    batch = kafka_batch(*((key_bytes(), each) for each, _, _ in cases))
    place = batch.schema.get_field_index("headers")
    listed = [[{"key": key, "value": held} for key, held in headers] for _, headers, _ in cases]
    batch = batch.set_column(place, "headers", pa.array(listed, HEADERS))
    found = batch_decoded_both_ways(batch)
    assert found[0].column("decode_error").is_null().to_pylist() == [sound for _, _, sound in cases]
    assert found[0].column("value_schema_id").to_pylist()[:3] == [9, 9, 9]
    assert first_difference(found) is None
