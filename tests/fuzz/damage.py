"""Damage that knows Avro: numbers at the edges of types, longer forms of a number, an item once more."""

from __future__ import annotations

import random

from debezium_damage import mutated  # type: ignore[import-not-found]

_BITS = (31, 32, 53, 62, 63)
_DAYS, _SECONDS = (-719_162, 2_932_896), (-62_135_596_800, 253_402_300_799)
EDGES = (
    *(0, -1, 63, 64, -64, -65, 86_399_999, 86_400_000, 86_399_999_999, 86_400_000_000),
    *(sign * 2**bits + by for bits in _BITS for sign in (1, -1) for by in (-1, 0, 1)),
    *(edge + by for edge in _DAYS for by in (-1, 0, 1)),
    *(edge * unit + by for edge in _SECONDS for unit in (1, 10**3, 10**6, 10**9) for by in (-1, 0, 10**3)),
)


def damaged(record: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(record) + 1)
    match chance.randrange(6):
        case 0:
            return record[:place] + number(chance.choice(EDGES)) + record[_behind(record, place) :]
        case 1:
            end = _behind(record, place)
            return record[:place] + _longer(record[place:end], chance.randrange(1, 10)) + record[end:]
        case 2:
            return _again(record, place, chance.randrange(1, chance.choice((5, 9, 40))))
        case _:
            return mutated(bytes(5) + record, chance)[5:]  # type: ignore[no-any-return]


def number(value: int) -> bytes:
    """As Avro writes it, whatever its size."""
    left, found = (value << 1) if value >= 0 else (-value << 1) - 1, bytearray()
    while left >= 0x80:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def _behind(record: bytes, place: int) -> int:
    """The end of the number that begins there, if one does."""
    end = place
    while end < len(record) and record[end] >= 0x80:
        end += 1
    return min(end + 1, len(record))


def _longer(digits: bytes, by: int) -> bytes:
    """The same number with zeros for its highest bits."""
    if not digits:
        return bytes([0x80] * by + [0])
    return digits[:-1] + bytes([digits[-1] | 0x80] + [0x80] * (by - 1) + [0])


def _again(record: bytes, place: int, size: int) -> bytes:
    """Some bytes twice, and one more of them promised by the byte before: an item, an entry, text."""
    if not 0 < place < len(record) or record[place - 1] > 0x7D:
        return record + record[place : place + size]
    piece = record[place : place + size]
    return record[: place - 1] + bytes([record[place - 1] + 2]) + piece + record[place:]
