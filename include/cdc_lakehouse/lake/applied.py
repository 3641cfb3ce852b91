"""What a silver table has to remember of the events that it has applied, beside their coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cdc_lakehouse.lake.place import Place

Reached = tuple[int, int]
"""(source epoch, commit before the event): coarse, for a first look at what comes next."""


class NewestWriter(NamedTuple):
    """The writer schema of a topic's newest event."""

    schema: int
    reached: Reached
    """Place of that event."""


@dataclass(frozen=True, slots=True)
class Applied:
    cleared: Place | None = None
    """Rows and events before it are gone: the table was truncated, or a repeated snapshot lacks them."""
    complete: int | None = None
    """The source epoch whose snapshot has ended, while some of its rows may not be in bronze yet."""
    reached: Reached | None = None
    """Of the highest event; one that is not above it may be one that was applied before."""
    unfilled: bool = False
    """Whether rows came from other keys whose values bronze did not hold yet: it may have them by now."""
    made_by: dict[str, Any] | None = None
    """The settings that chose columns and rows (`silver.made_by`); None where silver has what bronze has."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Column that the newest writer does not send -> its policy in silver (`on_dropped_column`)."""
    writers: Mapping[str, NewestWriter] = field(default_factory=dict)
    """Topic -> its newest writer, in a table of several topics: a merge may have events of one only."""
    filled: tuple[str, ...] = ()
    """Columns that were added with a default and filled in all rows."""
    follows: int | None = None
    """The version of silver that the step was made for: it knows nothing of what others did behind it."""

    @property
    def top(self) -> Reached | None:
        """Nothing that was applied stands above it."""
        ends = [] if self.reached is None else [self.reached]
        if self.cleared is not None:
            ends.append((self.cleared.position[0], self.cleared.position[2]))
        return max(ends, default=None)

    def document(self) -> dict[str, Any]:
        return {
            "cleared": self.cleared,
            "complete": self.complete,
            "reached": self.reached,
            "unfilled": self.unfilled,
            "made_by": self.made_by,
            "follows": self.follows,
            **({"dropped": dict(self.dropped)} if self.dropped else {}),
            **({"writers": self.writers} if self.writers else {}),
            **({"filled": list(self.filled)} if self.filled else {}),
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any] | None) -> Applied:
        """Ledgers of releases before tombstones have none."""
        if document is None:
            return cls()
        return cls(
            cleared=Place.of(document["cleared"]),
            complete=document["complete"],
            reached=_pair(document["reached"]),
            unfilled=document["unfilled"],
            made_by=document.get("made_by"),
            follows=document.get("follows"),
            dropped=document.get("dropped", {}),
            writers={
                topic: NewestWriter(schema, (reached[0], reached[1]))
                for topic, (schema, reached) in document.get("writers", {}).items()
            },
            filled=tuple(document.get("filled", ())),
        )


def _pair(document: Sequence[int] | None) -> Reached | None:
    return None if document is None else (document[0], document[1])
