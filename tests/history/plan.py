"""A seed into an endless list of steps: what is written, drained, killed and compared, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from history.steps import DDL, FAULTS, GROUPS, KEY_CHANGES, SAVEPOINTS, SNAPSHOTS, Kind, Step  # type: ignore[import-not-found]
from history.tables import OFF_BY_DEFAULT, TABLES, Table  # type: ignore[import-not-found]

SESSIONS = 4
_WEIGHTS = {
    Kind.INSERT: 14,
    Kind.INSERT_MANY: 6,
    Kind.UPSERT: 10,
    Kind.COPY: 3,
    Kind.UPDATE: 26,
    Kind.UPDATE_MANY: 5,
    Kind.DELETE: 9,
    Kind.DELETE_MANY: 1.5,
    Kind.REINSERT: 5,
    Kind.KEY_CHANGE: 7,
    Kind.KEY_CHAIN: 3,
    Kind.KEY_SWAP: 3,
    Kind.KEY_TAKEN_OVER: 3,
    Kind.PLACE_SWAP: 3,
    Kind.SEAT_SWAP: 3,
    Kind.TRUNCATE: 1,
    Kind.TRUNCATE_MANY: 0.6,
    Kind.TRUNCATE_AND_FILL: 1,
    Kind.ADD_COLUMN: 2.5,
    Kind.DROP_COLUMN: 0.8,
    Kind.RENAME_COLUMN: 1.2,
    Kind.WIDEN_COLUMN: 1,
    Kind.REPLACE_COLUMN: 0.8,
    Kind.SNAPSHOT: 0.4,
    Kind.SNAPSHOT_PART: 0.4,
    Kind.SNAPSHOT_FULL: 0.6,
    Kind.SAVEPOINT: 7,
    Kind.ROLLBACK_TO: 4,
    Kind.RELEASE: 2,
}
_FAULTS = {
    Kind.KILL_DRIVER: 4,
    Kind.RESTART_TASK: 4,
    Kind.KILL_CONNECT: 4,
    Kind.RESTART_POSTGRES: 1,
    Kind.KILL_SUBMITTED: 1,
    Kind.NEW_SLOT: 2,
}


OFTEN = 0.25


class UnknownNameError(ValueError):
    """Neither a kind of step nor a group of them nor a table."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a history may consist of."""

    kinds: frozenset[Kind] = frozenset(Kind)
    tables: tuple[Table, ...] = tuple(t for t in TABLES if t.name not in OFF_BY_DEFAULT)
    faults: float = OFTEN
    """How often something is killed or restarted before a drain."""

    @classmethod
    def of(cls, *, without: Iterable[str] = (), also: Iterable[str] = (), faults: float = OFTEN) -> Choice:
        """`without` leaves kinds, groups and tables out; `also` brings tables that are off by default."""
        left_out, brought = set(without), set(also)
        names = {table.name for table in TABLES}
        unknown = (left_out - names - set(GROUPS) - set(Kind) - {"toast"}) | (brought - names)
        if unknown:
            raise UnknownNameError(f"no kind, group or table is called {', '.join(sorted(unknown))}")
        gone = {kind for name in left_out for kind in GROUPS.get(name, (name,))}
        off = (OFF_BY_DEFAULT - brought) | left_out | ({"toasted"} if "toast" in left_out else set())
        tables = tuple(table for table in TABLES if table.name not in off)
        return cls(frozenset(kind for kind in Kind if kind not in gone), tables, faults)

    def suits(self, kind: Kind, table: Table) -> bool:
        if kind in DDL:
            return bool(table.takes_ddl)
        if kind in (Kind.PLACE_SWAP, Kind.SEAT_SWAP):
            return bool(table.name == {Kind.PLACE_SWAP: "ranked", Kind.SEAT_SWAP: "seats"}[kind])
        if kind in SNAPSHOTS:
            return bool(table.snapshots)
        if kind in KEY_CHANGES or kind is Kind.REINSERT:
            return bool(table.key)
        return kind is not Kind.UPSERT or bool(table.upserts)


@dataclass(slots=True)
class _Sessions:
    """How many statements are left in the transaction of each session; those without one are missing."""

    left: dict[int, int] = field(default_factory=dict)

    def ended(self, chance: Random, number: int) -> Step:
        self.left.pop(number, None)
        return Step(Kind.ROLLBACK if chance.random() < 0.15 else Kind.COMMIT, session=number)

    def all_ended(self, chance: Random) -> list[Step]:
        order = sorted(self.left)
        chance.shuffle(order)
        return [self.ended(chance, number) for number in order]


def steps(seed: int, choice: Choice) -> Iterator[Step]:
    """The same for the same seed and choice, without end. Every round ends with a quiet point."""
    chance = Random(seed)  # noqa: S311
    while True:
        sessions = _Sessions()
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            yield from _written(chance, choice, sessions, chance.choice((30, 100, 200, 300)))
            yield from _disturbed(chance, choice)
            yield Step(chance.choice((Kind.DRAIN, Kind.DRAIN, Kind.CUT)), seed=chance.getrandbits(32))
        yield from _written(chance, choice, sessions, chance.choice((5, 30, 80)))
        yield from sessions.all_ended(chance)
        yield Step(Kind.QUIET)


def _disturbed(chance: Random, choice: Choice) -> Iterator[Step]:
    faults = [kind for kind in FAULTS if kind in choice.kinds]
    if not faults or chance.random() < 1 - choice.faults:
        return
    kind = chance.choices(faults, [_FAULTS[kind] for kind in faults])[0]
    if kind is Kind.KILL_DRIVER:  # there must be something to kill
        yield Step(Kind.DRAIN, seed=chance.getrandbits(32))
    yield Step(kind, seed=chance.getrandbits(32))


def _written(chance: Random, choice: Choice, sessions: _Sessions, count: int) -> Iterator[Step]:
    kinds = [kind for kind in _WEIGHTS if kind in choice.kinds and _has_table(choice, kind)]
    weights = [_WEIGHTS[kind] for kind in kinds]
    for _ in range(count):
        number = chance.randrange(SESSIONS)
        kind = chance.choices(kinds, weights)[0]
        if kind in DDL and chance.random() < 0.7:  # it waits for nobody, or fails
            yield from sessions.all_ended(chance)
        if number not in sessions.left and chance.random() < 0.75:
            sessions.left[number] = chance.choice((1, 2, 3, 5, 8, 20))
            yield Step(Kind.BEGIN, session=number)
        yield _step(chance, choice, kind, number)
        if number in sessions.left:
            sessions.left[number] -= 1
            if sessions.left[number] <= 0:
                yield sessions.ended(chance, number)


def _has_table(choice: Choice, kind: Kind) -> bool:
    return kind in SAVEPOINTS or any(choice.suits(kind, table) for table in choice.tables)


def _step(chance: Random, choice: Choice, kind: Kind, number: int) -> Step:
    suited = [table.name for table in choice.tables if choice.suits(kind, table)]
    table = "" if kind in SAVEPOINTS else chance.choice(suited)
    return Step(kind, table, number, chance.getrandbits(32), guarded=chance.random() < 0.4)
