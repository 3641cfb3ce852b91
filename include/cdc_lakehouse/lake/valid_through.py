"""Up to when a table has all that its source committed: the value that ledgers and reports tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class ValidThrough:
    position: str
    """Of the source's log: every change that was committed up to there."""
    time: str | None
    """By the source's clock: every change that a reader of the source could see then. None where no moment
    is known that lies before `position`."""
    epoch: int
    """The source epoch that `position` is of: those of different ones cannot be compared."""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_document(cls, document: Mapping[str, Any] | None) -> ValidThrough | None:
        return None if document is None else cls(document["position"], document["time"], document["epoch"])

    def lag_seconds(self, now: datetime | None = None) -> float | None:
        """How old the table can be at most, if the clocks of here and of the source agree."""
        if self.time is None:
            return None
        age = (now or datetime.now(UTC)) - datetime.fromisoformat(self.time)
        return round(age.total_seconds(), 1)
