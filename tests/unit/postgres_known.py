"""The known inequalities as captured records show them: where each occurs, and with which image.

`include/cdc_lakehouse/debezium/known_inequalities.toml` says what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from unit import postgres_images as images  # type: ignore[import-not-found]
from unit.postgres_differs import NO_FIELD, Difference  # type: ignore[import-not-found]


@dataclass(frozen=True)
class Known:
    """Covers differences of columns whose type in PostgreSQL begins like this, or of these places."""

    id: str
    found: Any = None
    """One value, a tuple of the values that it may be, or what makes it of the difference."""
    sql: tuple[str, ...] = ("",)
    places: tuple[str, ...] | None = None
    profiles: tuple[str, ...] | None = None
    said: tuple[str | None, ...] | None = None
    ops: tuple[str, ...] | None = None
    out_of_range: bool = False

    def covers(self, difference: Difference) -> bool:
        return (
            difference.out_of_range is self.out_of_range
            and difference.sql.startswith(self.sql)
            and (self.places is None or difference.place in self.places)
            and (self.profiles is None or difference.profile in self.profiles)
            and (self.said is None or difference.said in self.said)
            and (self.ops is None or difference.op in self.ops)
            and self._has_image(difference)
        )

    def _has_image(self, difference: Difference) -> bool:
        if callable(self.found):
            return difference.said is not None and repr(self.found(difference)) == repr(difference.found)
        image = self.found
        possible = image if isinstance(image, tuple) else (image,)
        return repr(difference.found) in map(repr, possible)


_MOMENTS = ("timestamp(0) without", "timestamp(3) without", "timestamp without")
_INSTANTS = ("timestamp(0) with time", "timestamp(3) with time", "timestamp with time")
_INFINITIES = ("infinity", "-infinity", "{infinity,2024-02-29}", "{infinity,NULL}", "{-infinity}")
_BEYOND = ("294275-12-31 23:59:59.999999", "294275-12-31 23:59:59.999999+00")
_PRECISE = ("precise", "late", "connect", "micros", "nanos")
_DEFAULTS = {
    "defaults.number": 7, "defaults.word": "seven", "defaults.day": 19723, "made_defaults.flag": True,
    "made_defaults.uid": "b68a35a7-17ad-35b3-af2a-ae46edb4545b", "made_defaults.made": 0,
    "made_defaults.moment": 1_704_067_200_000_000, "made_defaults.clock": 43_200_000_000,
    "made_defaults.span": (86_400_000_000, "P0Y0M1DT0H0M0S"), "made_defaults.doc": '{"a": 1}',
    "made_defaults.mood": "glad", "made_defaults.part": 0.5, "made_defaults.free": ("1.5", 1.5),
    "made_defaults.fixed": (Decimal("1.50"), "1.50", 1.5), "made_defaults.padded": "a",
    "made_defaults.bits": b"A",
}  # fmt: skip

_UNTOUCHED = tuple(
    f"toasted_lists.{name}"
    for name in (
        "smalls", "reals", "doubles", "fixed", "free", "flags", "instants", "times", "zoned", "hosts", "macs",
        "oids", "ranges", "path", "area", "counts",
    )
)  # fmt: skip

KNOWN = (
    Known("no-field", NO_FIELD, ops=("",)),
    *(Known("null-becomes-default", value, places=(at,), said=(None,)) for at, value in _DEFAULTS.items()),
    Known("generated", places=("made.twice", "strict.twice"), ops=("c", "u")),
    Known("name", (None, ""), sql=("name",), ops=("c", "u")),
    Known("bit-array", sql=("bit(3)[]",)),
    Known("shape-array", sql=("box[]", "line[]", "lseg[]", "path[]", "polygon[]", "circle[]")),
    Known("null-item", sql=("types.", "tsvector[]", "pg_lsn[]", "int4multirange[]"), ops=("c", "u", "r")),
    Known(
        "untouched-number",
        places=("toasted.free_number",),
        profiles=(*_PRECISE, "structured"),
        ops=("c", "u"),
    ),
    Known("untouched-number", sql=("numeric(1000,1)",), profiles=(*_PRECISE, "structured"), ops=("u",)),
    Known("untouched-list", places=("toasted.moments",), ops=("c", "u")),
    Known("untouched-list", places=_UNTOUCHED, ops=("u",)),
    Known("untouched-dates", places=("toasted.days",), profiles=("iso", "structured", "connect")),
    Known("untouched-bytes", places=("toasted.raw", "toasted.blobs"), profiles=("iso", "structured")),
    Known("interval-months", images.months_as_days, sql=("interval",), profiles=_PRECISE),
    Known("timetz-offset", images.at_utc, sql=("time with",), profiles=(*_PRECISE, "iso")),
    Known("bit-length", images.number_of_bits, sql=("bit varying",)),
    Known("time-items", images.cut_times, sql=("time without time zone[]",)),
    Known(
        "connect-milliseconds", images.cut_to_millis, sql=(*_MOMENTS, "time without"), profiles=("connect",)
    ),
    Known("double-digits", images.as_double, sql=("numeric", "money"), profiles=("structured",)),
    Known("negative-scale", images.with_2046_zeros, sql=("numeric(5,-2)",), profiles=(*_PRECISE, "iso")),
    Known("trailing-zeros", images.without_zeros_at_the_end, sql=("numeric",), profiles=_PRECISE),
    Known("not-a-number", sql=("numeric",), said=("NaN", "Infinity", "-Infinity"), profiles=_PRECISE),
    Known("not-a-number-item", sql=("numeric",), said=("{NaN}", "{NaN,1}")),
    Known("dimensions", images.of_outer_dimension, places=("nested.grid", "nested.words", "strict.grid")),
    Known("lower-bound", [5, 6], places=("nested.grid",), said=("[0:1]={5,6}",)),
    Known("old-moments", images.by_julian_calendar, places=("arrays.moments",)),
    Known("old-instants", images.without_era, places=("arrays.instants",)),
    Known("old-days", images.without_era, places=("arrays.days",)),
    Known("old-days", images.without_era, places=("times.day",), profiles=("late",)),
    Known("infinity", sql=("date", *_MOMENTS, *_INSTANTS), said=_INFINITIES, out_of_range=True),
    Known("far-days", sql=("date",), out_of_range=True),
    Known("far-moments", sql=(*_MOMENTS, *_INSTANTS), said=_BEYOND, out_of_range=True),
    Known("nanoseconds", images.within_nanoseconds, sql=_MOMENTS, profiles=("nanos",)),
    Known("midnight-as-text", 0, sql=("time",), said=("24:00:00",), profiles=("iso",)),
    Known("midnight-as-record", sql=("time",), said=("24:00:00",), profiles=("structured",)),
    Known("long-interval", -(2**63), places=("times.span",), said=("-178000000 years",), profiles=_PRECISE),
    Known("long-number", places=("toasted.free_number",), ops=("c",), out_of_range=True),
)


def covering(difference: Difference) -> list[str]:
    """Names of the inequalities that it may be."""
    return [known.id for known in KNOWN if known.covers(difference)]
