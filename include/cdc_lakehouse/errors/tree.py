"""The root of the errors: what every one of them can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, dataclass_transform

from cdc_lakehouse.contract import ExitCode, TableError
from cdc_lakehouse.redaction import one_line, printable_lines


@dataclass_transform(kw_only_default=True, eq_default=False)
class LakehouseError(Exception):
    """Root of the tree; raise one of the leaves. Their annotated names are what they are raised with."""

    code: ClassVar[str] = ""
    exit_code: ClassVar[ExitCode]
    sentence: ClassVar[str] = ""
    advice: ClassVar[str] = ""
    in_lines: ClassVar[tuple[str, ...]] = ()
    """Names of fields whose text may have several lines."""
    snapshot: ClassVar[str] = ""
    """Kind of snapshot in the advice, `incremental` or `blocking`: its statement is appended."""
    repair: ClassVar[str] = ""
    """Kind of repair in the advice, like `rebuild`: its DAG and its filled form are appended."""
    repair_options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Options of that repair, as its form has them."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, kw_only=True)(cls)

    def __str__(self) -> str:
        """Return the sentence; no line break and no escape in a name or reason of others gets into it."""
        return self.sentence.format(
            **{name: self._printable(name, value) for name, value in vars(self).items()}
        )

    def _printable(self, name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        return printable_lines(value) if name in self.in_lines else one_line(value)

    def as_table_error(self) -> TableError:
        return TableError(code=self.code, exit_code=self.exit_code, sentence=str(self), advice=self.advice)
