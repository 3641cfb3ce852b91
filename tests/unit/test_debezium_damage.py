"""However a record is damaged, columns say of it what the strict reader of single records says."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from avro_columns import fastavro_takes  # type: ignore[import-not-found]
from debezium_damage import (  # type: ignore[import-not-found]
    EVENTS,
    FASTAVRO_IS_LAX,
    INAPPLICABLE,
    SCHEMA,
    SOUND,
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
from debezium_records import HEADERS, columns, kafka_batch, raw_schema  # type: ignore[import-not-found]

from cdc_lakehouse.avro import frames
from cdc_lakehouse.avro.constants import LEAST_ROWS
from cdc_lakehouse.avro.frames import frame_column
from cdc_lakehouse.debezium.plans import DecodePlans

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def test_sound_records_are_the_same_both_ways():
    records = [(key_bytes(number), value_bytes(each)) for number, each in enumerate(EVENTS * 3)]
    found = decoded_both_ways([*records, (key_bytes(), None), (None, value_bytes(EVENTS[4]))])
    assert found[0].column("decode_error").null_count == len(records) + 2
    assert first_difference(found) is None


def test_no_headers_are_null_however_they_are_sent():
    some = [None, [], [{"key": "a", "value": b"1"}]] * 40
    records = [(key_bytes(number), value_bytes(EVENTS[0])) for number in range(len(some))]
    none: list[Any] = [[]] * len(some)
    for headers in (some, none):
        batch = kafka_batch(*records).set_column(6, "headers", pa.array(headers, HEADERS))
        found = batch_decoded_both_ways(batch)
        assert first_difference(found) is None
        assert found[0].column("headers").to_pylist() == [each or None for each in headers]


@pytest.mark.parametrize("value", EVENTS)
def test_every_truncation_is_bad_and_its_neighbours_are_not(value):
    whole = value_bytes(value)
    records = [(key_bytes(), each) for cut in truncations(whole) for each in (cut, whole)]
    found = decoded_both_ways(records)
    faults = found[0].column("decode_error").is_valid().to_pylist()
    assert faults == [True, False] * len(whole)
    assert first_difference(found) is None


@pytest.mark.parametrize("value", EVENTS)
def test_damage_among_many_alike_is_told_apart(value):
    """Runs of fields that are the same in all rows are read once (`avro.constants`); bad rows stand out."""
    whole = value_bytes(value)
    damaged = [*list(truncations(whole))[5::3], *list(bit_flips(whole))[::7]]
    for start in range(0, len(damaged), 40):
        some = damaged[start : start + 40]
        records = [(key_bytes(), each) for each in [whole] * (LEAST_ROWS - 20) + some + [whole] * 2]
        assert first_difference(decoded_both_ways(records)) is None


def test_events_that_cannot_be_applied_are_the_same_both_ways():
    values = [value_bytes(each) for each in [*INAPPLICABLE, *EVENTS] * 20]
    found = decoded_both_ways([*((key_bytes(), each) for each in values), *((None, each) for each in values)])
    assert first_difference(found) is None
    faults = [error and error["code"] for error in found[0].column("decode_error").to_pylist()]
    assert faults[:11] == [
        *["unknown_operation"] * 2,
        *["missing_position"] * 3,
        "missing_after",
        *[None] * 5,
    ]
    assert faults[220:231] == [
        *["unknown_operation"] * 2,
        *["missing_key"] * 2,
        "missing_position",
        *["missing_key"] * 5,
        None,
    ]


@pytest.mark.parametrize("value", EVENTS)
def test_dropped_columns_are_passed_over_both_ways(value):
    """Their texts need not be UTF-8; all other damage is found."""
    whole = value_bytes(value)
    left = columns(SCHEMA)
    dropped = frozenset({"note", "tags", "store", "huge", "mood", "photo"})
    row = tuple(column for column in left.row if column.name not in dropped)
    known = told(columns=replace(left, row=row), dropped=dropped)
    some = [*truncations(whole), *bit_flips(whole), whole, whole.replace("hällo".encode(), b"h\xff\xffllo")]
    found = decoded_both_ways([(key_bytes(), each) for each in some], known)
    assert first_difference(found) is None
    assert found[0].column("decode_error").is_valid().to_pylist()[-2:] == [False, False]
    assert {field.name for field in found[0].schema.field("after").type} == {column.name for column in row}


@pytest.mark.parametrize("value", [*EVENTS, *INAPPLICABLE])
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
    for data, error in zip(damaged, found.column("decode_error").to_pylist(), strict=True):
        ours = error is None or error["code"] in SOUND
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
        (value[5:], [("__value_schema_id", b"\x01" + GUID.bytes)], True),
        (value[5:], [("__value_schema_id", b"\x01" + GUID.bytes[:15])], False),
        (value[5:], [("__value_schema_id", None)], False),
        (value, [("__value_schema_id", number)], False),
    ]
    batch = kafka_batch(*((key_bytes(), each) for each, _, _ in cases))
    place = batch.schema.get_field_index("headers")
    listed = [[{"key": key, "value": held} for key, held in headers] for _, headers, _ in cases]
    batch = batch.set_column(place, "headers", pa.array(listed, HEADERS))
    found = batch_decoded_both_ways(batch, told_by_guid())
    assert found[0].column("decode_error").is_null().to_pylist() == [sound for _, _, sound in cases]
    assert found[0].column("value_schema_id").to_pylist()[:4] == [9, 9, 9, None]
    assert first_difference(found) is None


def told_by_guid() -> DecodePlans:
    """The schema of events by its number and by its GUID."""
    known: DecodePlans = told()
    return replace(known, schemas={**known.schemas, GUID: known.schemas[9]})


def test_guids_in_frames_name_schemas_as_numbers_do():
    whole = [value_bytes(each) for each in EVENTS] * 50
    by_guid = [b"\x01" + GUID.bytes + each[5:] for each in whole]
    cut = [by_guid[0][:size] for size in range(len(by_guid[0]))]
    records = [each for pair in zip(whole, by_guid, strict=True) for each in pair] + cut
    found = decoded_both_ways([(key_bytes(), each) for each in records], told_by_guid())
    assert first_difference(found) is None
    rows = found[0].to_pylist()[: 2 * len(whole)]
    assert {each["value_schema_id"] for each in rows[::2]} == {9}
    for numbered, named in zip(rows[::2], rows[1::2], strict=True):
        assert named == {**numbered, "value_schema_id": None, "offset": named["offset"]}
    assert found[0].column("decode_error").is_null().to_pylist()[2 * len(whole) :] == [False] * len(cut)


def test_many_guids_cost_one_look_each(monkeypatch):
    """A batch of frames of format 1 must not fall to a loop over its records."""
    made: list[bytes] = []

    def counted(*, bytes: bytes) -> UUID:  # noqa: A002
        made.append(bytes)
        return UUID(bytes=bytes)

    monkeypatch.setattr(frames, "UUID", counted)
    guids = [bytes([number] * 16) for number in range(3)]
    column = frame_column(pa.array([b"\x01" + guids[row % 3] + b"x" for row in range(3_000)], pa.binary()))
    assert sorted(made) == guids
    assert [column.ref(code) for code in column.schema.tolist()[:4]] == [
        UUID(bytes=guids[row % 3]) for row in range(4)
    ]
