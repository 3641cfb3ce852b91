"""One step, one winner: what may happen between reading a ledger and committing its next step."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import ORDERS, SOURCE, TOPIC, know, notes, order  # type: ignore[import-not-found]
from py4j.protocol import Py4JJavaError

from cdc_lakehouse.bronze.decode_udf import write_files
from cdc_lakehouse.bronze.written_file import Span, WrittenFile
from cdc_lakehouse.errors import (
    BatchMisfitError,
    FilesGoneError,
    ForeignCommitError,
    LedgerLostError,
    StorageUnavailableError,
    SupersededError,
    TableChangedError,
)
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.file_commit import commit_files
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger, partition_id
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.lake.tables import schema_of

ROW = "SELECT * FROM {t} WHERE offset = 0"


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("steps").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    return chain


@pytest.fixture
def stocked(template: Chain, tmp_path: Path) -> Chain:
    """Bronze holds offsets 0 and 1."""
    return template.copied_to(tmp_path)


def uri_of(chain: Chain) -> str:
    return str(chain.lake.bronze("orders"))


def state(chain: Chain) -> TableState:
    found = read_state(uri_of(chain), table="orders")
    assert found is not None
    return found


def ledger(chain: Chain) -> Ledger:
    found = state(chain).ledger
    assert found is not None
    return found


def next_step(before: Ledger, attempt: str) -> Ledger:
    end = before.end(SOURCE, 0)
    assert end is not None
    return before.advanced({SOURCE: {0: (end, end + 1)}}, attempt=attempt, seen_through=None)


def step(chain: Chain, before: Ledger, attempt: str = "mine", *, known: int | None = None) -> int:
    """Commit the next step behind `before`, without a file."""
    session = chain.engine.isolated()
    schema = schema_of(session, uri_of(chain))
    assert schema is not None
    return commit_files(
        session,
        uri_of(chain),
        [],
        before=before,
        after=next_step(before, attempt),
        schema=schema,
        known=known,
    )


def interrupted(monkeypatch, *, before=None, after=None) -> None:
    """Something happens once, directly before or after Delta commits."""
    real, todo = DeltaTransaction.commit, [1]

    def commit(self, *args, **options):
        first = bool(todo) and bool(todo.pop())
        if first and before is not None:
            before()
        version = real(self, *args, **options)
        if first and after is not None:
            after(lambda: real(self, *args, **options))
        return version

    monkeypatch.setattr(DeltaTransaction, "commit", commit)


def test_a_commit_sets_the_step_and_the_end_of_every_partition(stocked):
    version = step(stocked, ledger(stocked))

    delta = DeltaTable(uri_of(stocked))
    assert (version, delta.transaction_version(APPLICATION_ID)) == (2, 2)
    assert delta.transaction_version(partition_id(SOURCE, 0)) == 3
    assert ledger(stocked).attempt == "mine"


def test_a_step_that_another_attempt_took_is_lost(stocked):
    before = ledger(stocked)
    step(stocked, before, "winner")

    with pytest.raises(SupersededError) as caught:
        step(stocked, before, "zombie")

    assert (caught.value.seq, caught.value.attempt) == (1, "zombie")
    assert (state(stocked).version, ledger(stocked).attempt) == (2, "winner")


def test_a_step_that_another_attempt_takes_at_the_same_moment_is_lost(stocked, monkeypatch):
    before = ledger(stocked)
    interrupted(monkeypatch, before=lambda: step(stocked, before, "winner"))

    with pytest.raises(SupersededError):
        step(stocked, before, "zombie")

    assert (state(stocked).version, ledger(stocked).attempt) == (2, "winner")


def test_a_zombie_that_knows_the_newest_version_is_fenced_by_the_step(stocked):
    before = ledger(stocked)
    step(stocked, before, "winner")

    with pytest.raises(SupersededError):
        step(stocked, before, "zombie", known=2)

    assert state(stocked).version == 2


def test_a_commit_that_threw_but_happened_counts(stocked, monkeypatch):
    interrupted(monkeypatch, after=lambda again: again())

    assert step(stocked, ledger(stocked)) == 2

    assert (state(stocked).version, ledger(stocked).seq) == (2, 2)


def test_a_step_that_this_attempt_made_already_is_not_made_again(stocked):
    before = ledger(stocked)
    step(stocked, before)

    assert step(stocked, before) == 2
    assert state(stocked).version == 2


def test_a_commit_that_threw_and_did_not_happen_raises_its_own_error(stocked, monkeypatch):
    def unreadable() -> None:
        log = Path(urlsplit(uri_of(stocked)).path) / "_delta_log"
        log.rename(log.with_name("gone"))
        log.write_text("no folder")

    interrupted(monkeypatch, before=unreadable)
    before = ledger(stocked)

    with pytest.raises(StorageUnavailableError):
        step(stocked, before)


def test_an_exception_that_says_nothing_of_the_kind_is_raised_as_it_is(stocked, monkeypatch):
    def no_schema(self, _schema):
        self._transaction.updateMetadata(None, False)

    monkeypatch.setattr(DeltaTransaction, "evolve", no_schema)

    with pytest.raises(Py4JJavaError):
        step(stocked, ledger(stocked))

    assert state(stocked).version == 1


@pytest.mark.parametrize(
    ("statement", "operation"),
    [
        ("DELETE FROM {t} WHERE offset = 0", "DELETE"),
        ("INSERT INTO {t} SELECT * FROM {t} WHERE offset = 0", "WRITE"),
        ("RESTORE TABLE {t} TO VERSION AS OF 0", "RESTORE"),
    ],
)
@pytest.mark.parametrize("moment", ["since the ledger was read", "while it is committed"])
def test_a_foreign_change_of_data_stops_the_commit(stocked, monkeypatch, statement, operation, moment):
    before = ledger(stocked)
    if moment == "while it is committed":
        interrupted(monkeypatch, before=lambda: stocked.sql(statement, uri_of(stocked)))
    else:
        stocked.sql(statement, uri_of(stocked))

    with pytest.raises(ForeignCommitError) as caught:
        step(stocked, before, known=1)

    assert (caught.value.version, caught.value.operation) == (2, operation)
    assert DeltaTable(uri_of(stocked)).version() == 2


@pytest.mark.parametrize(
    "statement",
    ["OPTIMIZE {t} ZORDER BY (offset)", "ALTER TABLE {t} ADD COLUMNS (team STRING)"],
)
def test_work_that_keeps_the_data_is_waited_for(stocked, monkeypatch, statement):
    interrupted(monkeypatch, before=lambda: stocked.sql(statement, uri_of(stocked)))

    assert step(stocked, ledger(stocked), known=1) == 3

    assert ledger(stocked).seq == 2
    assert notes(stocked.bronze(ORDERS)) == {0: "one", 1: "two"}


def test_a_table_that_never_stands_still_is_tried_again_later(stocked, monkeypatch):
    real, number = DeltaTransaction.commit, count()

    def commit(self, *args, **options):
        stocked.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('n' = '{next(number)}')", uri_of(stocked))
        return real(self, *args, **options)

    monkeypatch.setattr(DeltaTransaction, "commit", commit)

    with pytest.raises(TableChangedError) as caught:
        step(stocked, ledger(stocked))

    assert "MetadataChangedException" in caught.value.reason
    assert ledger(stocked).seq == 1


def test_a_column_that_was_changed_to_another_type_by_hand_stops_the_commit(stocked, monkeypatch):
    session = stocked.engine.isolated()
    before = ledger(stocked)
    schema = schema_of(session, uri_of(stocked))
    assert schema is not None
    fields = {**schema.jsonValue()}
    for each in fields["fields"]:
        if each["name"] == "attempt":
            each["type"] = "binary"

    with pytest.raises(TableChangedError):
        commit_files(
            session,
            uri_of(stocked),
            [],
            before=before,
            after=next_step(before, "mine"),
            schema=type(schema).fromJson(fields),
        )

    assert state(stocked).version == 1


def test_a_document_without_its_ids_is_no_ledger(stocked):
    """As if somebody had let transaction ids expire."""
    before = ledger(stocked)

    with pytest.raises(LedgerLostError):
        step(stocked, replace(before, seq=7), known=1)


def test_a_partition_that_stands_elsewhere_is_refused(stocked):
    before = ledger(stocked)
    progress = replace(before.sources[SOURCE][0], end=1)
    other = replace(before, sources={SOURCE: {0: progress}})

    with pytest.raises(LedgerLostError):
        step(stocked, other, known=1)

    assert state(stocked).version == 1


def test_files_that_cannot_be_the_batch_are_not_committed(stocked, monkeypatch):
    def one_too_many(*args, **options) -> list[WrittenFile]:
        return [WrittenFile(name="f", size=1, modified=1, rows=1, spans=(Span(TOPIC, 0, 3, 3, 1),))]

    monkeypatch.setattr("cdc_lakehouse.bronze.ingest.write_files", one_too_many)

    with pytest.raises(BatchMisfitError):
        stocked.ingest(ORDERS, [order(2, 3)])

    assert state(stocked).version == 1


def test_files_that_somebody_deleted_before_the_commit_are_not_committed(stocked, monkeypatch):
    """As after a VACUUM with a retention that was shorter than the attempt."""
    real = write_files

    def lose(*args, **options) -> list[WrittenFile]:
        files = real(*args, **options)
        for file in files:
            (Path(urlsplit(uri_of(stocked)).path) / file.name).unlink()
        return files

    monkeypatch.setattr("cdc_lakehouse.bronze.ingest.write_files", lose)

    with pytest.raises(FilesGoneError) as caught:
        stocked.ingest(ORDERS, [order(3, 3)])

    assert (caught.value.count, state(stocked).version) == (1, 1)
