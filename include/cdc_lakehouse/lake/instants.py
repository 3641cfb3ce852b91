"""Instants as rows have them: microseconds since 1970 UTC, any number that a source sends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(micros: int | None) -> datetime | None:
    """Exact; None also beyond the years 1 to 9999: one record's odd commit time must not stop its table."""
    try:
        return None if micros is None else _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
