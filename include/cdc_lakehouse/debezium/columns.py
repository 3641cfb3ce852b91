"""The columns of a table as its schemas tell them, and how they grow (`cdc-semantics` §7)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: pa.DataType
    """Final type: what bronze and silver store."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Key fields and row fields, in the order in which the table got them."""

    key: tuple[Column, ...]
    row: tuple[Column, ...]


def columns_of(key_schema: str, value_schema: str, *, table: str) -> TableColumns:
    """From one pair of writer schemas (JSON texts). Raises a `ConfigError` for what cannot be planned."""
    raise NotImplementedError


def evolve(existing: TableColumns, new: TableColumns, *, table: str) -> TableColumns:
    """New columns at the end, types widened, missing columns kept; a `DataError` if that cannot be."""
    raise NotImplementedError


def evolve_leniently(existing: TableColumns, new: TableColumns) -> TableColumns:
    """Like `evolve`, but what cannot be stays as it is, and records that need it become undecodable."""
    raise NotImplementedError
