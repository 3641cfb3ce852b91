"""What maintenance remembers of a table from night to night: a small file per job beside the tables.

Each job writes a file of its own, so two jobs never overwrite each other. A file that is lost, or that holds
no document of this version, is an empty memory: the next VACUUM is a full one, and nights count from one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Self

from cdc_lakehouse.lake import files

logger = logging.getLogger(__name__)

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Memory:
    """Facts about one Delta table; those of the other job are absent."""

    conflict_nights: int = 0
    """Nights in a row on which OPTIMIZE gave way to other commits and did nothing."""
    last_conflict: date | None = None
    """The newest of these nights."""
    last_full_vacuum: datetime | None = None

    def with_conflict(self, night: date) -> Self:
        """Return the memory after OPTIMIZE gave way. A second time on one night counts once."""
        if night == self.last_conflict:
            return self
        return replace(self, conflict_nights=self.conflict_nights + 1, last_conflict=night)

    def with_full_vacuum(self, moment: datetime) -> Self:
        """Return the memory after a VACUUM that listed the folder."""
        return replace(self, last_full_vacuum=moment)

    def to_document(self) -> dict[str, Any]:
        """Return what the file keeps; facts that say nothing are left out."""
        conflict, vacuum = self.last_conflict, self.last_full_vacuum
        return {
            **({"conflict_nights": self.conflict_nights} if self.conflict_nights else {}),
            **({"last_conflict": conflict.isoformat()} if conflict is not None else {}),
            **({"last_full_vacuum": vacuum.isoformat()} if vacuum is not None else {}),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Raises `ValueError`, `TypeError` or `AttributeError` for what is no such document."""
        conflict, vacuum = document.get("last_conflict"), document.get("last_full_vacuum")
        moment = None if vacuum is None else datetime.fromisoformat(vacuum)
        if moment is not None and moment.tzinfo is None:
            raise ValueError(f"{vacuum!r} has no time zone")
        return cls(
            conflict_nights=int(document.get("conflict_nights", 0)),
            last_conflict=None if conflict is None else date.fromisoformat(conflict),
            last_full_vacuum=moment,
        )


def read_memories(uri: str) -> dict[str, Memory]:
    """Return Delta table -> what is remembered of it."""
    text = files.read_text_if_there(uri)
    if text is None:
        return {}
    try:
        document = json.loads(text)
        tables = document["tables"] if document["v"] == _VERSION else {}
        return {name: Memory.from_document(facts) for name, facts in tables.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        logger.warning("memory of maintenance is unreadable", extra={"uri": uri, "reason": str(exc)})
        return {}


def write_memories(uri: str, memories: Mapping[str, Memory]) -> None:
    """Replace the file. A second call changes nothing."""
    tables = {name: memory.to_document() for name, memory in memories.items()}
    files.write_text(uri, json.dumps({"v": _VERSION, "tables": tables}, sort_keys=True))
