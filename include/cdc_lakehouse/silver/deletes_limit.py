"""How many rows a merge may remove before a person has to agree (`deletes_limit`, decision 0048).

What a person agrees to is one removal: the step of silver, the version of bronze and the number of rows name
it. The merge that carries it out reads that version of bronze, whatever came since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cdc_lakehouse.config.models import DeletesLimit
from cdc_lakehouse.contract import table_named_by
from cdc_lakehouse.errors import DecisionOutdatedError, DeletesLimitError
from cdc_lakehouse.lake.ledger import Ledger

DECISION = "accept_deletes"
_REMOVAL = re.compile(r"^step([0-9]{1,18})@v([0-9]{1,18}):([0-9]{1,18})rows$")


@dataclass(frozen=True, slots=True)
class Removal:
    """Rows that a merge would take out of a table."""

    rows: int
    of: int
    """Number of rows in the table before, without rows that are marked as deleted."""
    where: str = "silver"
    causes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """MD5 of keys: payload values never enter a log."""

    def exceeds(self, limit: DeletesLimit) -> bool:
        return self.rows > limit.rows and self.rows > limit.share * self.of


@dataclass(frozen=True, slots=True)
class AcceptedDeletes:
    """The one removal that a person accepts, in the words of the error."""

    step: int
    """Silver's, before the merge."""
    bronze: int
    """The version whose commit states the ledger that the merge reads."""
    rows: int

    @classmethod
    def about(cls, table: str, decisions: Iterable[str]) -> AcceptedDeletes | None:
        """Parse the `<table>=<removal>` line about this table. Raise where it names no removal."""
        values = [line.partition("=")[2].strip() for line in decisions if table_named_by(line) == table]
        if not values:
            return None
        match = _REMOVAL.match(values[0])
        if match is None or len(values) > 1:
            raise _outdated(
                table, ", ".join(values), standing="one value, which a run with an empty form prints"
            )
        return cls(*map(int, match.groups()))

    def __str__(self) -> str:
        return f"step{self.step}@v{self.bronze}:{self.rows}rows"

    def document(self) -> dict[str, Any]:
        """Return the decision as the ledger of the merge records it."""
        return {DECISION: {"step": self.step, "bronze": self.bronze, "rows": self.rows}}

    def is_pending(self, silver: Ledger) -> bool:
        """Return whether silver is still at the step that the person saw."""
        return silver.seq == self.step

    def is_ahead_of(self, silver: Ledger) -> bool:
        """Return whether silver has still to apply that version of bronze."""
        return silver.stands_on is None or silver.stands_on[0] < self.bronze

    def refuse_unless_carried_out(self, silver: Ledger) -> None:
        """Raise unless silver has applied that version of bronze: the decision is about something else."""
        if silver.seq <= self.step or self.is_ahead_of(silver):
            raise _outdated(silver.table, str(self), standing="nothing")


@dataclass(frozen=True, slots=True)
class Brake:
    """The limit of one merge of a table, and the removal that a person has accepted."""

    table: str
    limit: DeletesLimit
    step: int
    bronze: int
    accepted: AcceptedDeletes | None
    """None also after it was carried out."""

    def refuse(self, removal: Removal) -> AcceptedDeletes | None:
        """Raise where `removal` exceeds the limit, unless a person accepted exactly this removal.

        Returns the decision that lets it pass; None where the limit does.
        """
        if not removal.exceeds(self.limit):
            return None
        value = AcceptedDeletes(self.step, self.bronze, removal.rows)
        if value == self.accepted:
            return value
        error = DeletesLimitError(
            table=self.table,
            rows=removal.rows,
            of=removal.of,
            where=removal.where,
            limit=f"{self.limit.rows} rows or {self.limit.share:.0%}",
            cause=", ".join(removal.causes) or "unknown",
            examples=", ".join(removal.examples) or "none",
            decision=f"{self.table}={value}",
        )
        if self.accepted is None:
            raise error
        standing = f"`{error.decision}`: {error}"
        raise _outdated(self.table, str(self.accepted), standing=standing) from error


def _outdated(table: str, named: str, *, standing: str) -> DecisionOutdatedError:
    name = f"`{table}={named}`" if named else "nothing"
    return DecisionOutdatedError(parameter=DECISION, table=table, named=name, standing=standing)
