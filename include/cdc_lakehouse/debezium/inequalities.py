"""The shape of a known inequality, and which columns it concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from cdc_lakehouse.debezium.source_facts import ARRAY, SourceFacts

ANY = "*"
ANY_ARRAY = "*[]"


class Trait(Enum):
    """What a column needs beside its type to lose values."""

    NONE = "any"
    NULL_AND_DEFAULT = "nullable, with a default"
    GENERATED = "generated"
    OLD_VALUE_NOT_SENT = "large, REPLICA IDENTITY not FULL"


class Weight(Enum):
    """How much is lost."""

    ALL = "every value"
    SOME = "some usual values"
    EDGE = "values that few tables have"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inequality:
    """Where the lake does not hold what PostgreSQL holds, though nothing failed. Texts are for people."""

    id: str
    types: tuple[str, ...]
    """As in `SourceFacts.types`, or `ANY`, or `ANY_ARRAY`."""
    source: str
    lake: str
    why: str
    way_out: str
    weight: Weight
    settings: tuple[str, ...] = ()
    """Only under one of these; none: under all."""
    trait: Trait = Trait.NONE

    def concerns(self, column: SourceFacts) -> bool:
        """Whether it can lose values of the column; what nobody knows of its settings or storage may be."""
        return self._has_type(column) and self._has_setting(column) and _has_trait(column, self.trait)

    def _has_type(self, column: SourceFacts) -> bool:
        if ANY in self.types:
            return True
        return any(
            each in self.types or (ANY_ARRAY in self.types and each.endswith(ARRAY)) for each in column.types
        )

    def _has_setting(self, column: SourceFacts) -> bool:
        return not self.settings or column.settings is None or not column.settings.isdisjoint(self.settings)


@dataclass(frozen=True, slots=True)
class Concern:
    """An inequality, and the columns of one table that it concerns."""

    inequality: Inequality
    columns: tuple[str, ...]


def columns_concerned(
    inequalities: Iterable[Inequality], columns: Iterable[SourceFacts]
) -> tuple[Concern, ...]:
    """In the order of `inequalities`; those that concern no column are left out."""
    known = tuple(columns)
    found = (
        Concern(each, tuple(column.name for column in known if each.concerns(column)))
        for each in inequalities
    )
    return tuple(concern for concern in found if concern.columns)


def _has_trait(column: SourceFacts, trait: Trait) -> bool:
    match trait:
        case Trait.NONE:
            return True
        case Trait.NULL_AND_DEFAULT:
            return column.is_nullable is True and column.has_default is True
        case Trait.GENERATED:
            return column.is_generated is True
        case Trait.OLD_VALUE_NOT_SENT:
            return column.is_out_of_line is not False and column.sends_old_values is not True
    assert_never(trait)
