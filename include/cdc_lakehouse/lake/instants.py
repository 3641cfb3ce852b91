"""Instants as rows have them: microseconds since 1970 UTC, any number that a source sends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def age_in_words(seconds: float) -> str:
    """`3 d 4 h`, `2 h 5 min`, `40 s`: the two largest units."""
    left, parts = int(seconds), []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, size)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2]) or "0 s"


def parse_moment(text: str, *, timezone: str) -> datetime:
    """Return what a person wrote; a time without an offset is one of `timezone`. Raise `ValueError`."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no time like 2026-11-03T14:00:00+00:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(timezone))).astimezone(UTC)


def instant(micros: int | None) -> datetime | None:
    """Exact; None also beyond the years 1 to 9999: one record's odd commit time must not stop its table."""
    try:
        return None if micros is None else _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
