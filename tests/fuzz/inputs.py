"""What the fuzzer feeds: a target, options and some records, as bytes that mutate well.

Two bytes name the target (a checksum of its name, so that a new one does not shift the others), one holds
the options; then come the records, each after its length in two bytes, the last one as far as it goes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from zlib import crc32

MOST_RECORDS = 40
_HEAD = 3


class Option(IntFlag):
    GUID = 1
    """Schemas are named by GUID (wire format 1), not by id."""
    HEADER = 2
    """... in a header of the record, not before the payload."""
    WHOLE = 4
    """Records are whole frames; otherwise each gets a sound beginning."""
    AS_NULL = 8
    """`out_of_range: as_null`."""
    DROPPED = 16
    """Some columns are left out."""
    MANY = 32
    """The first record very often, the others among it: runs that are alike (`avro.constants`)."""
    KEYS = 64
    """Records are keys, beside a sound value; otherwise values beside a sound key."""
    SLICED = 128
    """The batch does not begin where its memory begins."""


@dataclass(frozen=True, slots=True)
class Input:
    target: int
    options: Option
    records: tuple[bytes, ...]

    @classmethod
    def of(cls, data: bytes) -> Input:
        head, at = data[:_HEAD].ljust(_HEAD, b"\0"), _HEAD
        records: list[bytes] = []
        while at + 2 <= len(data) and len(records) < MOST_RECORDS:
            size = int.from_bytes(data[at : at + 2], "big")
            records.append(data[at + 2 : at + 2 + size])
            at += 2 + size
        return cls(int.from_bytes(head[:2], "big"), Option(head[2]), tuple(records))

    @property
    def data(self) -> bytes:
        head = self.target.to_bytes(2, "big") + bytes([self.options])
        return head + b"".join(len(record).to_bytes(2, "big") + record for record in self.records)


def code(name: str) -> int:
    return crc32(name.encode()) & 0xFFFF


Change = Callable[[bytes], bytes]


def changed(data: bytes, chance: random.Random, change: Change, largest: int) -> bytes:
    """One to three small changes, mostly `change` of one record; the result is an input again."""
    case = Input.of(data)
    for _ in range(chance.randrange(1, 4)):
        case = _changed(case, chance, change)
    while len(case.data) > largest and case.records:
        case = replace(case, records=case.records[:-1])
    return case.data


def _changed(case: Input, chance: random.Random, change: Change) -> Input:
    records = list(case.records) or [b""]
    # The first record, which makes up most of a batch of many, is to stay sound mostly.
    place = chance.randrange(len(records)) if chance.random() < 0.3 else len(records) - 1
    match chance.randrange(12):
        case 0:
            return replace(case, options=case.options ^ Option(1 << chance.randrange(8)))
        case 1:
            records.insert(place, records[place])
        case 2 if len(records) > 1:
            del records[place]
        case 3 if len(records) < MOST_RECORDS:
            records.append(change(records[0]))
        case _:
            records[place] = change(records[place])[:0xFFFF]
    return replace(case, records=tuple(records))


def crossed(one: bytes, other: bytes, chance: random.Random, largest: int) -> bytes:
    """Records of both, or the beginning of one record and the end of another."""
    case, giver = Input.of(one), Input.of(other)
    if not (case.records and giver.records):
        return one
    given, taken = chance.choice(giver.records), chance.choice(case.records)
    if chance.random() < 0.5:
        given = taken[: chance.randrange(len(taken) + 1)] + given[chance.randrange(len(given) + 1) :]
    crossing = replace(case, records=(*case.records[: MOST_RECORDS - 1], given[:0xFFFF]))
    return crossing.data if len(crossing.data) <= largest else one


def shrunk(case: Input, fails: Callable[[Input], bool]) -> Input:
    """Fewer records, options and bytes, as long as it fails."""
    case = replace(case, records=_fewer(case.records, lambda some: fails(replace(case, records=some))))
    for option in Option:
        lesser = replace(case, options=case.options & ~option)
        if lesser != case and fails(lesser):
            case = lesser
    for place in range(len(case.records)):
        case = _shorter(case, place, fails)
    return case


def _fewer(records: tuple[bytes, ...], fails: Callable[[tuple[bytes, ...]], bool]) -> tuple[bytes, ...]:
    for place in reversed(range(len(records))):
        some = records[:place] + records[place + 1 :]
        if fails(some):
            records = some
    return records


def _shorter(case: Input, place: int, fails: Callable[[Input], bool]) -> Input:
    def holding(record: bytes) -> Input:
        return replace(case, records=(*case.records[:place], record, *case.records[place + 1 :]))

    record = case.records[place]
    size = len(record) // 2
    while size:
        at = 0
        while at < len(record):
            if fails(holding(record[:at] + record[at + size :])):
                record = record[:at] + record[at + size :]
            else:
                at += size
        size //= 2
    return holding(record)


def inputs_of(target: str, records: Sequence[bytes], choices: Sequence[Option], largest: int) -> list[bytes]:
    """One input per choice of options, with as many of the records as there is room for."""
    found = []
    for options in choices:
        case = Input(code(target), options, tuple(records[:MOST_RECORDS]))
        while len(case.data) > largest and case.records:
            case = replace(case, records=case.records[:-1])
        found.append(case.data)
    return found
