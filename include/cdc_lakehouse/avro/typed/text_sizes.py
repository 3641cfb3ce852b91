"""Length of the texts of numbers, before they are made: one limit per record, in both readers.

A number of a variable scale takes five bytes and up to 16 KB of text. The texts of all numbers of a record
are bounded by its bytes; a record beyond that is undecodable (`record_too_large`). Both readers judge by
`longest_text`, which looks at the length and the scale of a number and not at its digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.output import count_output
from cdc_lakehouse.avro.typed.columns import numbers_of, numbers_of_offsets, present, sizes_of
from cdc_lakehouse.avro.typed.values import MAX_SCALE

FREE_TEXT, TEXT_PER_BYTE = 65_536, 8
"""Characters that the numbers of a record may become: a fixed part, and a part per byte of the record."""


class TextSize(Protocol):
    """Length of the texts of raw values of one type. Equal types compare equal."""

    def of_value(self, raw: Any) -> int:
        """Return the most characters that a value which is not null may become."""
        ...

    def of_column(self, column: pa.Array) -> np.ndarray:
        """Return the same for each row, 0 for nulls."""
        ...


def longest_text(size: int, scale: int) -> int:
    """Return the most characters of a number of `size` bytes; a scale beyond the bound has no text at all."""
    return 3 * size + min(abs(scale), MAX_SCALE) + 3


def longest_texts(sizes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return `longest_text` of each of many numbers."""
    texts: np.ndarray = 3 * sizes + np.minimum(np.abs(scales), MAX_SCALE) + 3
    return texts


def require_text_budget(texts: int, record_size: int) -> None:
    """Count the texts of one record. Raises `RecordFault` where they are beyond its budget."""
    if texts > FREE_TEXT + TEXT_PER_BYTE * record_size:
        raise RecordFault(AvroFault.TOO_LARGE, f"numbers that become {texts} characters of text")
    count_output(texts)


def over_text_budget(texts: np.ndarray, record_sizes: np.ndarray, sound: np.ndarray) -> np.ndarray | None:
    """Return the records beyond the budget, None for none, and count the texts of the others."""
    over: np.ndarray = sound & (texts > FREE_TEXT + TEXT_PER_BYTE * record_sizes)
    count_output(int(texts[sound & ~over].sum()))
    return over if over.any() else None


@dataclass(frozen=True, slots=True)
class DecimalTextSize:
    """Length of texts of bytes whose scale the schema states."""

    scale: int

    def of_value(self, raw: bytes) -> int:
        return longest_text(len(raw), self.scale)

    def of_column(self, column: pa.Array) -> np.ndarray:
        # A schema may say any number as its scale, and some do not fit 64 bits.
        scales = np.full(len(column), min(abs(self.scale), MAX_SCALE))
        texts: np.ndarray = longest_texts(sizes_of(column), scales) * present(column)
        return texts


@dataclass(frozen=True, slots=True)
class VariableScaleTextSize:
    """Length of texts of records with a scale and bytes."""

    def of_value(self, raw: Mapping[str, Any]) -> int:
        return longest_text(len(raw["value"]), raw["scale"])

    def of_column(self, column: pa.Array) -> np.ndarray:
        scale = numbers_of(column.field("scale"), np.int32).astype(np.int64)
        texts: np.ndarray = longest_texts(sizes_of(column.field("value")), scale) * present(column)
        return texts


@dataclass(frozen=True, slots=True)
class ItemsTextSize:
    """Length of the texts of items of lists and maps."""

    item: TextSize

    def of_value(self, raw: Any) -> int:
        items = raw.values() if isinstance(raw, dict) else raw
        return sum(self.item.of_value(item) for item in items if item is not None)

    def of_column(self, column: pa.Array) -> np.ndarray:
        lists = column if column.offset == 0 else pa.concat_arrays([column])
        items = self.item.of_column(lists.items if pa.types.is_map(lists.type) else lists.values)
        before = np.concatenate([[0], np.cumsum(items)])
        sizes: np.ndarray = np.diff(before[numbers_of_offsets(lists)]) * present(column)
        return sizes


@dataclass(frozen=True, slots=True)
class MembersTextSize:
    """Length of the texts of record members that have any."""

    members: tuple[tuple[str, TextSize], ...]

    def of_value(self, raw: Mapping[str, Any]) -> int:
        return sum(size.of_value(raw[name]) for name, size in self.members if raw[name] is not None)

    def of_column(self, column: pa.Array) -> np.ndarray:
        sizes = np.zeros(len(column), np.int64)
        if pa.types.is_struct(column.type):
            for name, size in self.members:
                sizes += size.of_column(column.field(name))
        texts: np.ndarray = sizes * present(column)
        return texts


def items_text_size(item: TextSize | None) -> ItemsTextSize | None:
    """Return the size of lists of `item`, None where it has no texts."""
    return None if item is None else ItemsTextSize(item)


def members_text_size(members: Mapping[str, TextSize | None]) -> MembersTextSize | None:
    """Return the size of records with these members, None where none has texts."""
    sized = tuple((name, size) for name, size in members.items() if size is not None)
    return MembersTextSize(sized) if sized else None
