"""How much the records of a batch may become, counted before it is made.

A few bytes can stand for much: a null in a list for a record of hundreds of fields, a number of five
bytes for 16 KB of text. Each record has budgets of its own (`widths`, `typed.text_sizes`, `json_text`), and
one beyond them is undecodable. Of ten thousand records within them a worker would still die. So a batch
is counted too, while `limited_output` holds, and one that would become too much is decoded in parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

MAX_BATCH_OUTPUT = 128 * 2**20
"""Bytes of a batch before the copies that assembling its rows takes, about as many again, twice."""


class BatchOutgrewError(Exception):
    """The batch would become too much. No record of it is at fault."""


class _Meter(local):
    left: float | None = None
    """None: nothing is counted."""


_METER = _Meter()


@contextmanager
def limited_output(limit: int = MAX_BATCH_OUTPUT) -> Iterator[None]:
    """Let what this thread decodes raise `BatchOutgrewError` instead of becoming more than `limit` bytes."""
    _METER.left = limit
    try:
        yield
    finally:
        _METER.left = None


def count_output(size: int) -> None:
    """Count bytes that are about to be made. Raises `BatchOutgrewError` beyond the limit."""
    if _METER.left is not None:
        _METER.left -= size
        if _METER.left < 0:
            raise BatchOutgrewError(f"a batch would become more than {MAX_BATCH_OUTPUT} bytes")
