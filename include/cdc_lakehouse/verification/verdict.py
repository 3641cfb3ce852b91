"""What a difference means: silver is wrong, or only late (decision 0027). Nothing but values.

A look reads silver first and the source after it, and notes a mark behind everything that it saw there.
A key that differs is *open*. It is wrong for certain when a later look finds that silver has applied all
records up to the mark, that nobody has written the source's row since, and that it still differs. Where the
source has no row, silver's row must be the same one: what deleted it came before the mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.ledger import Ends
from cdc_lakehouse.verification.differences import Difference, Key, Kind


class Verdict(StrEnum):
    EQUAL = "equal"
    OPEN = "open"
    DIFFERENT = "different"
    NOT_COMPARED = "not compared"


class Witness(StrEnum):
    """Who said that everything up to a mark was delivered."""

    CONNECT = "connect"
    SLOT = "slot"
    """Weaker: it may run ahead of what a partition does not take (decision 0033)."""


@dataclass(frozen=True, slots=True)
class Look:
    """At one moment of the source."""

    mark: LogPosition
    ends: Ends | None = None
    """Of Kafka's partitions, once all up to the mark was in them; who has read them knows all of it."""
    witness: Witness | None = None
    """Of that."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Who has read Kafka to `ends` has everything up to `position`."""

    position: LogPosition
    ends: Ends
    """Empty where the topic is gone: then nobody knows."""
    witness: Witness


@dataclass(frozen=True, slots=True)
class OpenKey:
    """A key that differed."""

    key: Key
    token: str
    since: Look
    """The first look that found it so, with nobody having written it since."""


@dataclass(frozen=True, slots=True)
class Judgement:
    wrong: tuple[Difference, ...]
    late: tuple[Difference, ...]
    """They may be on their way."""
    keys: tuple[OpenKey, ...]
    """All of them, for the next look."""

    @property
    def marks(self) -> list[LogPosition]:
        """Of the looks since which the wrong ones are known."""
        wrong = {difference.key for difference in self.wrong}
        return [key.since.mark for key in self.keys if key.key in wrong]

    @property
    def witnesses(self) -> list[Witness]:
        """By whose word the wrong ones are known; a row that is there twice needs nobody's."""
        wrong = {difference.key for difference in self.wrong}
        found = {key.since.witness for key in self.keys if key.key in wrong}
        return sorted(each for each in found if each is not None)

    def verdict(self, *, all_known: bool) -> Verdict:
        """`all_known`: no chunk that differs was left unopened."""
        if self.wrong:
            return Verdict.DIFFERENT
        return Verdict.OPEN if self.late or not all_known else Verdict.EQUAL


def judge(
    found: Sequence[Difference],
    earlier: Mapping[Key, OpenKey],
    now: Look,
    *,
    has_applied: Callable[[Look], bool],
) -> Judgement:
    """`has_applied`: whether silver, as it was compared, knows everything up to the mark of a look."""
    wrong: list[Difference] = []
    late: list[Difference] = []
    keys: list[OpenKey] = []
    for difference in found:
        known = earlier.get(difference.key)
        if known is None or known.token != difference.token:
            known = OpenKey(difference.key, difference.token, now)
        certain = difference.kind is Kind.DOUBLED or has_applied(known.since)
        (wrong if certain else late).append(difference)
        keys.append(known)
    return Judgement(tuple(wrong), tuple(late), tuple(keys))


def delivered(keys: Iterable[OpenKey], found: Sequence[Delivery]) -> tuple[OpenKey, ...]:
    """The same keys; looks whose mark is delivered know what silver must read for them.

    Of what was `found` the first that serves: no silver has to read more than that.
    """

    def told(look: Look) -> Look:
        if look.ends is not None:
            return look
        serves = next((each for each in found if each.position >= look.mark and each.ends), None)
        return look if serves is None else replace(look, ends=serves.ends, witness=serves.witness)

    return tuple(replace(key, since=told(key.since)) for key in keys)
