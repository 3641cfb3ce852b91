"""One step of a history as a plain value, and a list of them as a file that can be replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """What a step does; `WITHOUT` leaves kinds, groups of kinds or tables out by these names."""

    INSERT = "insert"
    INSERT_MANY = "insert_many"
    UPSERT = "upsert"
    COPY = "copy"
    UPDATE = "update"
    UPDATE_MANY = "update_many"
    DELETE = "delete"
    DELETE_MANY = "delete_many"
    REINSERT = "reinsert"
    KEY_CHANGE = "key_change"
    KEY_CHAIN = "key_chain"
    KEY_SWAP = "key_swap"
    KEY_TAKEN_OVER = "key_taken_over"
    PLACE_SWAP = "place_swap"
    SEAT_SWAP = "seat_swap"
    TRUNCATE = "truncate"
    TRUNCATE_MANY = "truncate_many"
    TRUNCATE_AND_FILL = "truncate_and_fill"
    ADD_COLUMN = "add_column"
    DROP_COLUMN = "drop_column"
    RENAME_COLUMN = "rename_column"
    WIDEN_COLUMN = "widen_column"
    REPLACE_COLUMN = "replace_column"
    SNAPSHOT = "snapshot"
    SNAPSHOT_PART = "snapshot_part"
    SNAPSHOT_FULL = "snapshot_full"
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback_to"
    RELEASE = "release"
    DRAIN = "drain"
    CUT = "cut"
    QUIET = "quiet"
    KILL_CONNECT = "kill_connect"
    RESTART_TASK = "restart_task"
    RESTART_POSTGRES = "restart_postgres"
    KILL_DRIVER = "kill_driver"
    KILL_SUBMITTED = "kill_submitted"
    NEW_SLOT = "new_slot"


KEY_CHANGES = (Kind.KEY_CHANGE, Kind.KEY_CHAIN, Kind.KEY_SWAP, Kind.KEY_TAKEN_OVER, Kind.SEAT_SWAP)
TRUNCATES = (Kind.TRUNCATE, Kind.TRUNCATE_MANY, Kind.TRUNCATE_AND_FILL)
DDL = (
    Kind.ADD_COLUMN,
    Kind.DROP_COLUMN,
    Kind.RENAME_COLUMN,
    Kind.WIDEN_COLUMN,
    Kind.REPLACE_COLUMN,
)
SNAPSHOTS = (Kind.SNAPSHOT, Kind.SNAPSHOT_PART, Kind.SNAPSHOT_FULL)
"""By signal: in chunks, a part of a table in chunks, and one that interrupts the stream. None interrupts it
for a part of a table: nothing in its records tells that from the whole (`cdc-semantics` §4)."""
SAVEPOINTS = (Kind.SAVEPOINT, Kind.ROLLBACK_TO, Kind.RELEASE)
FAULTS = (
    Kind.KILL_CONNECT,
    Kind.RESTART_TASK,
    Kind.RESTART_POSTGRES,
    Kind.KILL_DRIVER,
    Kind.KILL_SUBMITTED,
    Kind.NEW_SLOT,
)
GROUPS = {
    "keychange": KEY_CHANGES,
    "truncate": TRUNCATES,
    "ddl": DDL,
    "savepoints": SAVEPOINTS,
    "snapshots": (*SNAPSHOTS, Kind.NEW_SLOT),
    "faults": FAULTS,
}
"""A name of several kinds. `truncate` names all of its group."""


@dataclass(frozen=True, slots=True)
class Step:
    """`seed` decides everything that the kind leaves open; the columns are those of the moment."""

    kind: Kind
    table: str = ""
    session: int = 0
    seed: int = 0
    guarded: bool = False
    """In a savepoint of its own: a failure costs the statement and not the transaction."""

    def __str__(self) -> str:
        where = f" {self.table}" if self.table else ""
        return f"{self.kind}{where} (session {self.session}, seed {self.seed})"


def write_steps(path: Path, steps: Iterable[Step], *, seed: int) -> None:
    """One step per line, so that two files can be compared by eye."""
    lines = ",\n".join(json.dumps(asdict(step)) for step in steps)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"seed": {seed}, "steps": [\n{lines}\n]}}\n', encoding="utf-8")


def read_steps(path: Path) -> tuple[int, list[Step]]:
    """The seed that the steps came from, and the steps."""
    document = json.loads(path.read_text(encoding="utf-8"))
    steps = [Step(**{**step, "kind": Kind(step["kind"])}) for step in document["steps"]]
    return document["seed"], steps
