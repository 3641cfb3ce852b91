"""The bytes of a batch as one piece of memory that may be read in overlapping words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

WIDEST = 64
"""Bytes that may be read at one place at once."""
PADDING = WIDEST + 16
"""Bytes behind the last record that a read may touch: a cursor stands one behind the end at most."""


class Memory:
    """One Arrow buffer: single bytes, words at any place, and the buffer itself for Arrow.

    Spark's batches arrive as one message in which more buffers follow, so that there is something to
    read behind the last record; only a buffer that stands alone is copied for the padding.
    """

    __slots__ = ("arrow", "bytes", "words")

    def __init__(self, buffer: pa.Buffer) -> None:
        self.arrow = buffer
        self.bytes = _padded(buffer)
        # Type V8 and not u8: bytes without alignment, so that numpy reads them at any address.
        self.words = self.pieces(8)

    def pieces(self, size: int) -> np.ndarray:
        """All stretches of `size` bytes, at most `WIDEST`, by their first place."""
        return np.ndarray((len(self.bytes) - size + 1,), f"V{size}", self.bytes, strides=(1,))


def _padded(buffer: pa.Buffer) -> np.ndarray:
    whole = buffer.parent
    if whole is not None:
        begin = buffer.address - whole.address
        if begin >= 0 and begin + buffer.size + PADDING <= whole.size:
            return np.frombuffer(whole, np.uint8)[begin : begin + buffer.size + PADDING]
    padded = np.zeros(buffer.size + PADDING, np.uint8)
    padded[: buffer.size] = np.frombuffer(buffer, np.uint8)
    return padded
