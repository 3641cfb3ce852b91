"""Places in the log of PostgreSQL, and when it stood there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, order=True, slots=True)
class LogPosition:
    number: int

    @classmethod
    def from_text(cls, text: str) -> LogPosition:
        """`16/B374D848`, as PostgreSQL writes it."""
        high, low = text.split("/")
        return cls((int(high, 16) << 32) + int(low, 16))

    def __str__(self) -> str:
        return f"{self.number >> 32:X}/{self.number & 0xFFFFFFFF:X}"


@dataclass(frozen=True, slots=True)
class Moment:
    at: datetime
    """By the source's clock."""
    position: LogPosition
    """Where its log was written to right after: what a reader of the source saw at `at` stands below."""
