"""The undecodable records that a person means, whose cases are to be closed: decisions on values, no I/O.

A decision names one record by its coordinates, or all records of a code as they stood when the person saw
them (`lake.quarantine.name_of_cases`): a run that is cleared later closes nothing that came since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdc_lakehouse.avro.faults import AvroFault, SchemaFault, ValueFault
from cdc_lakehouse.bronze.decided import Named, decision_text
from cdc_lakehouse.debezium.faults import EventFault
from cdc_lakehouse.errors import CaseUnknownError, DecisionOutdatedError
from cdc_lakehouse.lake.ledger import Sources, source_of, topic_of
from cdc_lakehouse.lake.quarantine import Case, name_of_cases

CLOSE = "close_cases"
REOPEN = "reopen_cases"
_CODES = frozenset(map(str, (*AvroFault, *SchemaFault, *ValueFault, *EventFault)))
_COORDINATE = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)(@(?P<id>[A-Za-z0-9_-]+))?/(?P<partition>\d+)@(?P<offset>\d+)"
)
NOBODY: Named = frozenset()


@dataclass(frozen=True, slots=True)
class Coordinate:
    topic: str
    topic_id: str | None
    """None where the table has read one incarnation of the topic only."""
    partition: int
    offset: int

    @classmethod
    def of(cls, text: str) -> Coordinate | None:
        """Return what `shop.public.orders/0@17` or `shop.public.orders@<id>/0@17` says; None for others."""
        found = _COORDINATE.fullmatch(text)
        if found is None:
            return None
        return cls(found["topic"], found["id"], int(found["partition"]), int(found["offset"]))

    def has(self, case: Case) -> bool:
        same = (case.topic, case.partition, case.offset) == (self.topic, self.partition, self.offset)
        return same and self.topic_id in (None, case.topic_id)

    def was_read(self, read: Sources) -> bool:
        """Return whether the table has `read` so far."""
        return any(
            topic_of(source) == self.topic
            and (self.topic_id is None or source == source_of(self.topic, self.topic_id))
            and self.partition in partitions
            and self.offset < partitions[self.partition].end
            for source, partitions in read.items()
        )


@dataclass(frozen=True, slots=True)
class Meant:
    """Codes mean all records that have them now, coordinates one record each."""

    codes: frozenset[str] = frozenset()
    coordinates: frozenset[Coordinate] = frozenset()

    def has(self, case: Case) -> bool:
        return case.code in self.codes or any(each.has(case) for each in self.coordinates)


@dataclass(frozen=True, slots=True)
class ClosingPlan:
    close: Meant
    reopen: Meant
    closed: int
    """Records whose cases are open, and will not be."""
    reopened: int


def plan_closing(
    table: str,
    listed: Sequence[Case],
    *,
    read: Sources,
    close: Named | None = None,
    reopen: Named | None = None,
) -> ClosingPlan:
    """`listed` are all undecodable records of the table, which has `read` so far.

    What was carried out already is fine: a retry finds it so. A record whose case was reopened may even be
    decoded since. Raises `CaseUnknownError` for what means no record at all, and `DecisionOutdatedError`
    with the names that hold now for a code that is not named as it stands.
    """
    cases = _Cases(table, listed, read)
    to_close, to_reopen = cases.meant_to_close(close), cases.meant_to_reopen(reopen, closing=close or NOBODY)
    return ClosingPlan(
        close=to_close,
        reopen=to_reopen,
        closed=sum(case.closed is None and to_close.has(case) for case in listed),
        reopened=sum(case.closed is not None and to_reopen.has(case) for case in listed),
    )


def decisions_about(table: str, cases: Iterable[Case]) -> list[str]:
    """Return `<table>=<name>` for each code of `cases`, ready to be pasted; the most frequent first."""
    return [decision_text(table, [name]) for name, _ in _named_by_code(cases)]


@dataclass(frozen=True, slots=True)
class _Cases:
    table: str
    listed: Sequence[Case]
    read: Sources

    def meant_to_close(self, named: Named | None) -> Meant:
        self._require_a_name(CLOSE, named, closed=False)
        codes, coordinates = set(), set()
        for name in sorted(named or ()):
            place = Coordinate.of(name)
            code = name.partition(":")[0]
            if place is not None:
                self._require_known(name, any(place.has(case) for case in self.listed))
                coordinates.add(self._whole(CLOSE, name, place, closed=False))
                continue
            waiting = [case for case in self.listed if case.code == code and case.closed is None]
            self._require_known(name, any(case.code == code for case in self.listed))
            if waiting and name == name_of_cases(code, waiting):
                codes.add(code)
            elif not self._was_closed(name, code):
                raise self._outdated(CLOSE, name, waiting)
        return Meant(frozenset(codes), frozenset(coordinates))

    def meant_to_reopen(self, named: Named | None, *, closing: Named) -> Meant:
        """What was reopened may be decoded since, so that nothing of it is left to be compared."""
        self._require_a_name(REOPEN, named, closed=True)
        codes, coordinates = set(), set()
        for name in sorted(named or ()):
            place = Coordinate.of(name)
            code = name.partition(":")[0]
            if place is not None:
                may_be_decoded = name not in closing and place.was_read(self.read)
                known = may_be_decoded or any(place.has(case) for case in self.listed)
                self._require_known(name, known)
                coordinates.add(self._whole(REOPEN, name, place, closed=True))
                continue
            closed = [case for case in self.listed if case.code == code and case.closed is not None]
            self._require_known(name, code in _CODES or bool(closed))
            if closed and name != name_of_cases(code, closed):
                raise self._outdated(REOPEN, name, closed)
            codes |= {code} if closed else set()
        return Meant(frozenset(codes), frozenset(coordinates))

    def _was_closed(self, name: str, code: str) -> bool:
        """Return whether one attempt closed exactly what is named: its rows, and all of them at once."""
        by_attempt: dict[str, list[Case]] = {}
        for case in self.listed:
            if case.code == code and case.closed is not None:
                by_attempt.setdefault(case.closed, []).append(case)
        return any(name == name_of_cases(code, cases) for cases in by_attempt.values())

    def _whole(self, parameter: str, name: str, place: Coordinate, *, closed: bool) -> Coordinate:
        """Refuse a coordinate that does not say which incarnation of its topic it means, where there are
        several: an offset means another record in each."""
        incarnations = [source for source in self.read if topic_of(source) == place.topic]
        if place.topic_id is not None or len(incarnations) < 2:
            return place
        standing = [
            f"{case.topic}@{case.topic_id}/{case.partition}@{case.offset}"
            for case in self.listed
            if place.has(case) and (case.closed is not None) is closed
        ]
        raise _outdated(parameter, self.table, named=[name], standing=standing)

    def _require_a_name(self, parameter: str, named: Named | None, *, closed: bool) -> None:
        if named is not None and not named:
            standing = [case for case in self.listed if (case.closed is not None) is closed]
            raise self._outdated(parameter, "", standing)

    def _require_known(self, name: str, known: bool) -> None:  # noqa: FBT001
        if not known:
            raise CaseUnknownError(table=self.table, asked=name, held=_in_words(self.listed) or "none")

    def _outdated(self, parameter: str, name: str, standing: Iterable[Case]) -> DecisionOutdatedError:
        names = [name for name, _ in _named_by_code(standing)]
        return _outdated(parameter, self.table, named=[name] if name else [], standing=names)


def _outdated(
    parameter: str, table: str, *, named: Iterable[str], standing: Iterable[str]
) -> DecisionOutdatedError:
    texts = [
        f"`{decision_text(table, names)}`" if names else "nothing" for names in (list(named), list(standing))
    ]
    return DecisionOutdatedError(parameter=parameter, table=table, named=texts[0], standing=texts[1])


def _named_by_code(cases: Iterable[Case]) -> Iterator[tuple[str, Sequence[Case]]]:
    """Return the name of all cases of each code with them, the most frequent code first."""
    by_code: dict[str, list[Case]] = {}
    for case in cases:
        by_code.setdefault(case.code, []).append(case)
    for code, own in sorted(by_code.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield name_of_cases(code, own), own


def _in_words(listed: Sequence[Case]) -> str:
    """Return `bad_frame:3records@… (first shop.public.orders/0@17), …`, open cases first."""
    words = []
    for is_closed in (False, True):
        own = (case for case in listed if (case.closed is not None) is is_closed)
        for name, cases in _named_by_code(own):
            topic, partition, offset = min((c.topic, c.partition, c.offset) for c in cases)
            words.append(f"{name} ({'closed, ' * is_closed}first {topic}/{partition}@{offset})")
    return ", ".join(words)
