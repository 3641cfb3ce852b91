"""Random values of every type in PostgreSQL's own text, with the edges of each type among them."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Reader = Callable[[Random, str], str]
_WORDS = (
    "", " ", "a", "ü𝄞", "it's", "NULL", "null", "\\N", "tab\tline\nend", '"quoted"', "{}", "0", "緊急 🍷",
    "trailing ", "back\\slash", "A", "__debezium_unavailable_value?", "%s", "word", "x" * 19,
)  # fmt: skip
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_LETTERS = "abcdefghijklmnopqrstuvwxyzäöü0123456789 -_"
_BEYOND_INTEGER = 1 << 40


def text_of(sql: str, chance: Random, *, large: bool = False, nulls: float = 0.12) -> str | None:
    """A value of the type that PostgreSQL calls `sql`; `large` ones do not fit into a page."""
    if chance.random() < nulls:
        return None
    name = re.sub(r"\(.*?\)", "", sql)
    if large and name in _LARGE and chance.random() < 0.75:
        return _LARGE[name](chance, sql)
    return _OF_TYPE[name](chance, sql)


def key_text(sql: str, chance: Random, *, keys: int) -> str:
    """Of a key column: `keys` different values at most."""
    number = chance.randrange(keys)
    if sql == "uuid":
        return str(uuid.UUID(int=Random(number).getrandbits(128), version=4))  # noqa: S311
    if sql == "text":
        return _WORDS[number % len(_WORDS)]
    if sql == "bigint" and number % 4 == 0:
        return str(number + _BEYOND_INTEGER)
    return str(number)


def spare_key_text(sql: str) -> str:
    """A key that no other statement uses."""
    return {"uuid": "00000000-0000-4000-8000-000000000000", "text": "spare"}.get(sql, "-1")


def _chosen(*texts: str) -> Reader:
    return lambda chance, _sql: chance.choice(texts)


def _number(bits: int) -> Reader:
    edge = 2 ** (bits - 1)

    def text(chance: Random, _sql: str) -> str:
        return str(
            chance.choice((0, 1, -1, edge - 1, -edge, *(chance.randrange(-1000, 1000) for _ in range(6))))
        )

    return text


def _digits(sql: str) -> tuple[int, int]:
    found = re.search(r"\((\d+),(-?\d+)\)", sql)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _numeric(chance: Random, sql: str) -> str:
    precision, scale = _digits(sql)
    if precision == 0:
        few = f"{chance.randrange(-(10**9), 10**9)}.{chance.randrange(1, 10**6):06}"
        return chance.choice(("0", "1.500", "-0.00010", "NaN", few, few, few, "9" * 40 + ".1"))
    largest = 10**precision - 1
    unscaled = chance.choice(
        (0, 1, -largest, largest, *(chance.randrange(-(10**5), 10**5) for _ in range(6)))
    )
    if chance.random() < 0.03:
        return "NaN"
    digits = f"{abs(unscaled):0{scale + 1}}"
    return ("-" if unscaled < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


def _text(chance: Random, sql: str) -> str:
    found = re.search(r"\((\d+)\)", sql)
    most = int(found[1]) if found else 200
    word = chance.choice((*_WORDS, *("".join(chance.choices(_LETTERS, k=12)) for _ in range(8))))
    return word[:most]


def _padded(chance: Random, sql: str) -> str:
    return chance.choice(("", "a", "abc", "ü", "sixsix"))


def _moment(chance: Random, digits: int = 6) -> str:
    instant = _BEGIN + timedelta(microseconds=chance.randrange(-(10**15), 10**14))
    return instant.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")[: 20 + digits]


def _timestamp(chance: Random, sql: str) -> str:
    edges = (
        "infinity", "-infinity", "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999",
        "0044-03-15 12:00:00 BC", "9999-12-31 23:59:59.999", "12000-01-01 00:00:00", "1582-10-10 00:00:00",
    )  # fmt: skip
    return chance.choice((*edges, *(_moment(chance) for _ in range(12))))


def _bits(chance: Random, sql: str) -> str:
    found = re.search(r"\((\d+)\)", sql)
    size = int(found[1]) if found else 1
    size = chance.randint(1, size) if "varying" in sql else size
    return "".join(chance.choices("01", k=size))


def _bytes(chance: Random, _sql: str) -> str:
    return "\\x" + chance.choice((b"", b"\0", b"\xff\xfe", chance.randbytes(9))).hex()


def _json(chance: Random, _sql: str) -> str:
    documents: tuple[Any, ...] = (None, [], {}, "ü", {"a": 1, "b": [True, None]}, {"n": chance.randrange(99)})
    return json.dumps(chance.choice(documents), ensure_ascii=False)


def _letters(chance: Random, least: int = 2_500) -> str:
    """Not to be compressed below the limit of a page."""
    return "".join(chance.choices(_LETTERS, k=chance.randint(least, 2 * least)))


_LARGE: dict[str, Reader] = {
    "text": lambda chance, _: _letters(chance),
    "jsonb": lambda chance, _: json.dumps({"text": _letters(chance)}, ensure_ascii=False),
    "bytea": lambda chance, _: "\\x" + chance.randbytes(chance.randint(2_100, 4_000)).hex(),
    "text[]": lambda chance, _: "{" + ",".join(f'"{_letters(chance, 700)}"' for _ in range(5)) + "}",
}
_OF_TYPE: dict[str, Reader] = {
    "smallint": _number(16),
    "integer": _number(32),
    "bigint": _number(64),
    "oid": _chosen("0", "1", "4294967295"),
    "real": _chosen("0", "-0", "1.5", "NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45", "0.1"),
    "double precision": _chosen("0", "-0", "0.1", "NaN", "Infinity", "-Infinity", "1e308", "5e-324", "-2.5"),
    "numeric": _numeric,
    "money": _chosen("0", "1.50", "-99999.99", "92233720368547758.07"),
    "boolean": _chosen("t", "f"),
    "text": _text,
    "character varying": _text,
    "character": _padded,
    "uuid": lambda chance, _: str(uuid.UUID(int=chance.getrandbits(128), version=4)),
    "bytea": _bytes,
    "json": _json,
    "jsonb": _json,
    "date": _chosen(
        "infinity", "-infinity", "0001-01-01", "9999-12-31", "1970-01-01", "1582-10-10", "2026-02-28",
        "0044-03-15 BC", "10000-01-01", "2024-02-29",
    ),
    "time without time zone": _chosen(
        "00:00:00", "24:00:00", "12:34:56.789012", "23:59:59.999", "00:00:00.000001",
    ),
    "time with time zone": _chosen("12:34:56+02", "00:00:00+00", "23:59:59-05:30", "01:02:03.25+14"),
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamp,
    "interval": _chosen("0", "1 day", "3 mons 4 days 05:06:07.5", "-3 days", "1 year", "00:00:00.000001"),
    "bit": _bits,
    "bit varying": _bits,
    "inet": _chosen("10.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"),
    "cidr": _chosen("10.0.0.0/8", "192.168.1.0/24", "::/0"),
    "macaddr": _chosen("08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff"),
    "int4range": _chosen("empty", "[1,5)", "(,)", "[1,)", "[-5,-4)"),
    "history.mood": _chosen("merry", "sad", "so-so ü"),
    "integer[]": _chosen("{}", "{1,2,3}", "{NULL}", "{1,NULL,-2147483648}"),
    "text[]": _chosen("{}", '{a,NULL,"b c","",ü}', "{NULL}", '{"it\'s","{}"}'),
    "point": _chosen("(0,0)", "(1.5,-2.5)", "(1e+300,0.1)"),
}  # fmt: skip
