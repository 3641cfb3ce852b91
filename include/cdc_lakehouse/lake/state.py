"""Read where a table stands from its Delta log, without a JVM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from cdc_lakehouse.errors import (
    ForeignCommitError,
    LedgerLostError,
    StorageUnavailableError,
    WrongTableError,
)
from cdc_lakehouse.lake.commits import ForeignCommit, Told, restored_by, tells_enough, told_by
from cdc_lakehouse.lake.damage import data_file_sizes, refuse_damage
from cdc_lakehouse.lake.filesystem import delta_options, is_object_store
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger
from cdc_lakehouse.lake.newest_ledger import ledger_at

STEPS_ID = "cdc_lakehouse_step"
"""The Delta transaction id whose version is the newest step of a table without a ledger (`lake.steps`)."""
_FIRST_LOOK = 20
_FOREIGN_NAME = re.compile(r"v(?P<version>[0-9]+)@step(?P<step>[0-9]+)")
_MOST_LOOKS = 10


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one Delta version. `ledger` is None before its first commit of data, or if it was lost."""

    version: int
    ledger: Ledger | None
    size_bytes: int = 0
    """Of the files that the version consists of."""
    stated: int | None = None
    """The version whose commit states `ledger`."""
    stated_at: datetime | None = None
    """The time of that commit."""
    foreign: tuple[ForeignCommit, ...] = ()
    """Commits that changed data, are not ours and not known to `ledger`, newest first."""
    restored: Told | None = None
    """Of the version whose data a RESTORE by hand brought back; None where only rows can tell."""
    step: int | None = None
    """The transaction id of the newest step: it outlives the document."""
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]), compare=False)
    """Its columns."""
    life: str = ""
    """Delta's id of the table: one that is made anew in the same folder has another."""
    files: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Path -> size of each data file that the version consists of."""

    @property
    def seq(self) -> int:
        return max(self.step or 0, 0 if self.ledger is None else self.ledger.seq)

    @property
    def is_lost(self) -> bool:
        """There is data, or was a step, that no document accounts for."""
        if self.ledger is None:
            return self.step is not None or (self.size_bytes > 0 and not self.foreign)
        return self.step is not None and self.step > self.ledger.seq


def read_state(uri: str, *, table: str) -> TableState | None:
    """Newest version and ledger; None while the table does not exist.

    Raises `ForeignCommitError` when somebody else changed data after our newest commit, `LedgerLostError`
    when there is data that no commit accounts for, and `WrongTableError` for another table's folder.
    """
    state = look_into(uri, table=table)
    if state is None:
        return None
    if state.foreign:
        raise foreign_commit(state, table=table)
    if state.is_lost:
        raise LedgerLostError(table=table, path=uri)
    return state


def is_there(uri: str) -> bool:
    """Whether there is a Delta table, be it with a ledger or without."""
    return bool(DeltaTable.is_deltatable(uri, storage_options=delta_options(uri)))


def has_steps(uri: str) -> bool:
    """Whether there is a table without a ledger that got its first step. Its creation is a commit before."""
    try:
        delta = DeltaTable(uri, storage_options=delta_options(uri))
        return delta.transaction_version(STEPS_ID) is not None
    except TableNotFoundError:
        return False
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def made_at(uri: str) -> datetime | None:
    """Return when a table was made, by the clock of the machine that made it; None where it is not known."""
    try:
        created = DeltaTable(uri, storage_options=delta_options(uri)).metadata().created_time
    except (DeltaError, OSError):
        # The job that works on the table reports the problem under its name.
        return None
    return None if created is None else datetime.fromtimestamp(created / 1000, UTC)


def look_into(uri: str, *, table: str) -> TableState | None:
    """Return the same without a judgement: a job that may heal a table has to see its problem.

    Raises `LogTornError` or `LogDamagedError` for a log from which the state cannot be read.
    """
    if not is_object_store(uri):
        refuse_damage(uri, table=table)
    try:
        state = _state_of_one_moment(uri, table=table)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as exc:
        refuse_damage(uri, table=table)
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    if state.ledger is not None and state.ledger.table != table:
        whose = f"{state.ledger.kind} of {state.ledger.pipeline}.{state.ledger.table}"
        raise WrongTableError(table=table, path=uri, found=whose)
    return state


def foreign_name(state: TableState) -> str:
    """Return `v<version>@step<step>` of the newest foreign commit: a person acknowledges exactly this."""
    return f"v{state.foreign[0].version}@step{state.seq}"


def step_in(name: str) -> int | None:
    """Return the step of a `foreign_name`; None where it is none."""
    match = _FOREIGN_NAME.fullmatch(name)
    return None if match is None else int(match["step"])


def state_at(uri: str, version: int, *, table: str) -> TableState | None:
    """Return the table as the commit of `version`, one of ours, left it; None where that commit is gone."""
    ledger = ledger_at(uri, version, table=table)
    if ledger is None:
        return None
    try:
        schema = DeltaTable(uri, storage_options=delta_options(uri), version=version).schema()
    except (DeltaError, OSError):
        return None
    return TableState(version=version, ledger=ledger, stated=version, schema=pa.schema(schema.to_arrow()))


def foreign_commit(state: TableState, *, table: str, of_bronze: bool = False) -> ForeignCommitError:
    """Return the error; that of bronze prints the decision that takes the commit over."""
    newest = state.foreign[0]
    ours = state.stated if state.stated is not None else 0
    if newest.version < ours and state.ledger is not None:
        ours = state.ledger.applied.follows or 0
    return ForeignCommitError(
        table=table,
        version=newest.version,
        operation=newest.operation,
        ours=ours,
        decision=f"; acknowledge_foreign: `{table}={foreign_name(state)}`" if of_bronze else "",
    )


def _state_of_one_moment(uri: str, *, table: str) -> TableState:
    """Return the newest state.

    `deltalake` counts versions down from the one that it has loaded, but lists the newest commits: with one
    that came meanwhile, an older version would be given a newer ledger. So the commit itself is asked.
    """
    for _ in range(_MOST_LOOKS):
        state = _state(DeltaTable(uri, storage_options=delta_options(uri)), table=table)
        if state.stated is None or ledger_at(uri, state.stated, table=table) == state.ledger:
            return state
    raise StorageUnavailableError(root=uri, reason="its log changed whenever it was read")


def _state(delta: DeltaTable, *, table: str) -> TableState:
    version = delta.version()
    commits = delta.history(_FIRST_LOOK)
    told = told_by(commits, table=table)
    if len(commits) == _FIRST_LOOK and not tells_enough(commits, told):
        commits = delta.history()
        told = told_by(commits, table=table)
    sizes = data_file_sizes(delta)
    return TableState(
        version=version,
        ledger=told.ledger,
        size_bytes=sum(sizes.values()),
        stated=told.stated,
        stated_at=told.stated_at,
        foreign=told.foreign,
        restored=restored_by(commits, table=table) if told.foreign else None,
        step=delta.transaction_version(APPLICATION_ID),
        schema=pa.schema(delta.schema().to_arrow()),
        life=str(delta.metadata().id),
        files=sizes,
    )
