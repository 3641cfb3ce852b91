"""The root of the errors: what every one of them can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from cdc_lakehouse.contract import ExitCode, TableError


@dataclass_transform(kw_only_default=True, eq_default=False)
class LakehouseError(Exception):
    """Root of the tree; raise one of the leaves. Their annotated names are what they are raised with."""

    code: ClassVar[str] = ""
    exit_code: ClassVar[ExitCode]
    sentence: ClassVar[str] = ""
    advice: ClassVar[str] = ""
    snapshot: ClassVar[str] = ""
    """Which snapshot the advice names, `incremental` or `blocking`: its statement for the table follows."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, kw_only=True)(cls)

    def __str__(self) -> str:
        return self.sentence.format(**vars(self))

    def as_table_error(self) -> TableError:
        return TableError(code=self.code, exit_code=self.exit_code, sentence=str(self), advice=self.advice)
