"""How a record names its writer schema: by a number, or by a GUID."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

SchemaRef = int | UUID


def in_order(refs: Iterable[SchemaRef]) -> list[SchemaRef]:
    """Numbers first."""
    return sorted(refs, key=lambda ref: (isinstance(ref, UUID), ref.int if isinstance(ref, UUID) else ref))
