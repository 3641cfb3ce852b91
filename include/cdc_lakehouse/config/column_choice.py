"""Which of the source's columns a table's silver has, under which names, and which of them masked."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from cdc_lakehouse.config.values import COLUMN_PATTERN, Text

CHOICE_ERROR = "column_choice"
"""The kind of an error whose message is the rest of a sentence about the section."""


class Mask(StrEnum):
    DROP = "drop"
    NULL = "null"
    HASH = "hash"


def _null_is_a_mask(value: object) -> object:
    """YAML reads a bare `null` as nothing."""
    return Mask.NULL if value is None else value


MaskChoice = Annotated[
    Mask,
    BeforeValidator(_null_is_a_mask),
    WithJsonSchema({"enum": ["drop", "null", "hash", None]}),
]


def _not_ours(name: str) -> str:
    if name.lower().startswith("_cdc_"):
        raise ValueError(f"{name!r}: names that start with _cdc_ are ours")
    return name


SilverName = Annotated[str, StringConstraints(pattern=COLUMN_PATTERN), AfterValidator(_not_ours)]


class ColumnChoice(BaseModel):
    """Of silver only: bronze keeps all but what `drop_columns` keeps out."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    include: tuple[Text, ...] | None = None
    """The columns that silver has, the key's among them; all where it is left out."""
    exclude: tuple[Text, ...] = ()
    """Columns that silver does not have."""
    rename: dict[Text, SilverName] = {}
    """Column of the source -> its name in silver."""
    mask: dict[Text, MaskChoice] = {}
    """Column of the source -> `drop`: silver does not have it; `null`: it is always NULL; `hash`: a keyed
    hash (HMAC-SHA-256, hexadecimal) stands for it, the same for the same value in all tables."""

    @property
    def is_all(self) -> bool:
        """Whether silver's columns are those of the source."""
        return self == ColumnChoice()

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """(key of the section, column) of all columns that it speaks of."""
        spoken = {
            "include": self.include or (),
            "exclude": self.exclude,
            "rename": self.rename,
            "mask": self.mask,
        }
        return tuple((key, column) for key, columns in spoken.items() for column in columns)

    def keeps(self, column: str) -> bool:
        """Whether silver has this column of the source, by any name."""
        named = self.include is None or column in self.include
        return named and column not in self.exclude and self.mask.get(column) is not Mask.DROP

    def source_of(self, column: str) -> str | None:
        """What the source calls a column of silver; None where `column` is renamed to something else."""
        sources = {name: source for source, name in self.rename.items()}
        return sources.get(column, None if column in self.rename else column)

    @property
    def hashes(self) -> bool:
        return Mask.HASH in self.mask.values()

    @model_validator(mode="after")
    def _says_one_thing(self) -> ColumnChoice:
        if self.include is not None and self.exclude:
            raise PydanticCustomError(CHOICE_ERROR, "has `include` or `exclude`, not both")
        masked = [name for name, mask in self.mask.items() if mask is not Mask.DROP]
        for name in (*self.rename, *masked):
            if not self.keeps(name):
                raise PydanticCustomError(CHOICE_ERROR, f"leaves {name!r} out and says what it becomes")
        given: dict[str, str] = {}
        for name, new in self.rename.items():
            other = given.setdefault(new.casefold(), name)
            if other != name:
                raise PydanticCustomError(CHOICE_ERROR, f"gives {other!r} and {name!r} one name, {new!r}")
        return self
