"""Looks for bytes on which columns and the reader of single records disagree, raise or hang.

    PYTHONPATH=include:tests/unit python tests/fuzz/fuzz_decode.py --seconds 60 [--seed 1] [--atheris]

Bounded; exits 1 with the batch that failed written to `corpus/`. Every file of `corpus/` is tried first:
records of one batch, each after its length in four bytes. Plain mutation by default; with `--atheris`,
where that is installed, guided by coverage of the decoder's Python.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import random
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from avro_columns import columns_read, strictly_sound  # type: ignore[import-not-found]
from debezium_damage import (  # type: ignore[import-not-found]
    EVENTS,
    decoded_both_ways,
    first_difference,
    key_bytes,
    mutated,
    value_bytes,
)
from debezium_records import payload  # type: ignore[import-not-found]

from cdc_lakehouse.avro import decode
from cdc_lakehouse.avro.decode import FramePlans

CORPUS = Path(__file__).with_name("corpus")
HEAD = value_bytes(EVENTS[0])[:5]
SLOWEST = 20.0
"""Seconds for one batch, on any machine: beyond that something hangs."""
MEMBERS = ["null", "string"]
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
DAY = {"type": "int", "logicalType": "date"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}
UUID_BYTES = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
NESTED = {
    "type": "record",
    "name": "R",
    "fields": [
        {
            "name": "a",
            "type": {"type": "array", "items": {"type": "map", "values": ["null", "string", "int"]}},
        },
        {"name": "b", "type": [{"type": "array", "items": ["null", "long"]}, "null", "bytes"]},
    ],
}


LINK = {
    "type": "record",
    "name": "Link",
    "fields": [
        {"name": "v", "type": ["null", "double", {"type": "map", "values": "string"}]},
        {"name": "next", "type": {"type": "array", "items": ["null", "Link"]}},
    ],
}
TYPED = {
    "type": "record",
    "name": "T",
    "fields": [
        {"name": "a", "type": [MOMENT, {"type": "array", "items": DECIMAL}, "null"]},
        {"name": "b", "type": {"type": "map", "values": ["null", UUID_BYTES]}},
        {"name": "c", "type": ["null", LINK]},
        {"name": "d", "type": {"type": "array", "items": ["null", DAY]}},
        {"name": "e", "type": [{"type": "record", "name": "Nil", "fields": []}, "string", LINK["name"]]},
    ],
}
TYPED_VALUES: list[Any] = [
    {"a": 1, "b": {"x": b"0123456789abcdef"}, "c": {"v": 0.5, "next": []}, "d": [7, None], "e": ("Nil", {})},
    {"a": [b"\x07", b"\x00\xff"], "b": {}, "c": None, "d": [], "e": "text"},
    {"a": None, "b": {"": None}, "c": {"v": {"k": "v"}, "next": [{"v": None, "next": [None]}]}, "d": [1] * 40,
     "e": ("Link", {"v": None, "next": []})},
]  # fmt: skip
GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
PLANS = FramePlans.of({1: json.dumps(TYPED), GUID: json.dumps(TYPED)})


class Disagreement(Exception):  # noqa: N818 - what a fuzzer looks for is a find, not an error
    pass


def tried(bodies: list[bytes]) -> None:
    start = time.monotonic()
    difference = first_difference(decoded_both_ways([(key_bytes(), HEAD + body) for body in bodies]))
    if difference is not None:
        raise Disagreement(f"envelope, row {difference[0]}: {sorted(difference[1])}")
    _, sound = columns_read(NESTED, bodies)
    strict = [strictly_sound(NESTED, body) for body in bodies]
    # What columns leave to the strict reader is not sound to them, so only one direction is a fault.
    if (np.array(sound) & ~np.array(strict)).any():
        raise Disagreement("nested: taken, but not by the strict reader")
    _typed(bodies)
    if time.monotonic() - start > SLOWEST:
        raise Disagreement(f"{time.monotonic() - start:.0f} seconds")


def _typed(bodies: list[bytes]) -> None:
    heads = (b"\x00\x00\x00\x00\x01", b"\x01" + GUID.bytes)
    frames = pa.array([heads[row % 2] + body for row, body in enumerate(bodies)], pa.binary())
    batch, found = pa.record_batch({"frame": frames}), []
    for size in (1, len(bodies) + 1):
        decode.SMALL_GROUP = size
        found.append(decode.decode_frames(batch, PLANS))
        found[-1].validate(full=True)
    if not found[0].equals(found[1]):  # there are no floats in it, so no NaN
        rows = [row for row in range(len(batch)) if not found[0].slice(row, 1).equals(found[1].slice(row, 1))]
        raise Disagreement(f"typed, row {rows[0]}")


def packed(bodies: list[bytes]) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def unpacked(data: bytes) -> list[bytes]:
    bodies, at = [], 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        bodies.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return bodies


def kept(bodies: list[bytes]) -> Path:
    data = packed(bodies)
    path = CORPUS / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def shrunk(bodies: list[bytes]) -> list[bytes]:
    """The one record that fails alone, if there is one."""
    for body in bodies:
        try:
            tried([body])
        except Exception:  # noqa: BLE001 - whatever it is, it is what we look for
            return [body]
    return bodies


def mutate(seconds: float, seed: int) -> int:
    chance = random.Random(seed)  # noqa: S311
    pool = [value_bytes(each) for each in EVENTS]
    pool += [HEAD + payload(TYPED, each) for each in TYPED_VALUES] * 2
    pool += [HEAD + body for path in sorted(CORPUS.iterdir()) for body in unpacked(path.read_bytes())]
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        bodies = [mutated(chance.choice(pool), chance)[5:] for _ in range(400)]
        bodies += [chance.randbytes(chance.randrange(80)) for _ in range(200)]
        try:
            tried(bodies)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is what we look for
            print(f"{type(exc).__name__}: {exc}; kept as {kept(shrunk(bodies))}")
            return 1
        pool += [HEAD + body for body in chance.sample(bodies, 2)]
        count += len(bodies)
    print(f"{count} records, no disagreement")
    return 0


def guided(seconds: float) -> None:
    atheris = importlib.import_module("atheris")
    atheris.instrument_all()
    arguments = [sys.argv[0], f"-max_total_time={int(seconds)}", "-max_len=4096", str(CORPUS)]
    atheris.Setup(arguments, lambda data: tried(unpacked(data) or [data]))
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--atheris", action="store_true")
    options = parser.parse_args()
    CORPUS.mkdir(exist_ok=True)
    for path in sorted(CORPUS.iterdir()):
        tried(unpacked(path.read_bytes()))
    if options.atheris:
        guided(options.seconds)
    return mutate(options.seconds, options.seed)


if __name__ == "__main__":
    sys.exit(main())
