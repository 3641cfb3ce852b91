"""What is known of a source's column before a value of it was seen (`cdc-semantics` §7)."""

from __future__ import annotations

from dataclasses import dataclass

ARRAY = "[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """One column, as far as somebody has looked: None is unknown.

    Whoever asks PostgreSQL itself knows the type, and no setting of the connector. A schema shows settings,
    and often leaves several types open.
    """

    name: str
    types: frozenset[str] = frozenset()
    """PostgreSQL's name without a length, of the base type of a domain: `timestamp with time zone`, `box[]`.

    `numeric` is one without a scale, others are `numeric(p,s)` or `numeric(p,-s)`. User-defined types are
    `enum`, `domain[]`, `composite`. Several: it is one of these. None: nobody knows.
    """
    settings: frozenset[str] | None = None
    """Of the connector, as far as they shape this column: `time.precision.mode=connect`."""
    is_nullable: bool | None = None
    has_default: bool | None = None
    is_generated: bool | None = None
    is_out_of_line: bool | None = None
    """Whether PostgreSQL may store its values in the TOAST table."""
    sends_old_values: bool | None = None
    """Whether the table's REPLICA IDENTITY is FULL."""
