"""What a silver table has to remember of the events that it has applied, beside their coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from cdc_lakehouse.lake.place import Place, newest

Reached = tuple[int, int]
"""(source epoch, commit before the event): coarse, for a first look at what comes next."""


class NewestWriter(NamedTuple):
    """The writer schema of a topic's newest event."""

    schema: int
    reached: Reached
    """Place of that event."""


class Sweep(NamedTuple):
    """A place that every row of the source stands behind: a snapshot that a person asked for has read all of
    them there (decision 0060). What stands before it is gone."""

    place: Place
    at: str
    """Time of the source's clock at that place, in ISO form."""
    plan: str
    """Digest of the plan that a person approved."""


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
    """Topic -> the writer of its newest event. A merge may have late events only, or events of one topic."""
    filled: tuple[str, ...] = ()
    """Columns that were added with a default and filled in all rows."""
    sweeps: tuple[Sweep, ...] = ()
    """Oldest first. Unlike what `cleared` takes away they say nothing about values: a row that stands behind
    one of them is the same row as before it."""
    follows: int | None = None
    """The version of silver that the step was made for: it knows nothing of what others did behind it."""

    @property
    def swept(self) -> Place | None:
        return newest(*(sweep.place for sweep in self.sweeps))

    @property
    def gone_before(self) -> Place | None:
        """Return the place before which no row is left, for whatever reason."""
        return newest(self.cleared, self.swept)

    def with_sweeps(self, sweeps: Sequence[Sweep]) -> Applied:
        """Return the same with `sweeps`, those that it has already once."""
        new = [sweep for sweep in sweeps if sweep not in self.sweeps]
        return replace(self, sweeps=(*self.sweeps, *new))

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
            **({"sweeps": self.sweeps} if self.sweeps else {}),
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
            sweeps=tuple(map(_sweep, document.get("sweeps", ()))),
        )


def _sweep(document: Sequence[Any]) -> Sweep:
    (position, tx_id), at, plan = document
    return Sweep(Place(tuple(position), tx_id), at, plan)


def _pair(document: Sequence[int] | None) -> Reached | None:
    return None if document is None else (document[0], document[1])
