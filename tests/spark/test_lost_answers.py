"""A commit happens and its answer is lost: what a merge can prove it does, the rest is for the next one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from orders import NEW, know, notes, order  # type: ignore[import-not-found]
from py4j.java_gateway import JavaMember

from cdc_lakehouse.contract import ExitCode, Job, TableStatus
from cdc_lakehouse.silver.job import merge_tables
from crash import faults  # type: ignore[import-not-found]
from crash.faults import Faults  # type: ignore[import-not-found]

BY_STATEMENT = table_of("orders", deletion_vectors=False)
"""Delta makes no vectors then, so rows are replaced by MERGE."""
APPENDED = table_of("orders", mode="append")


@pytest.fixture
def suffers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commits of a test that asks for it lose their answers."""
    monkeypatch.setattr(JavaMember, "__call__", JavaMember.__call__)  # given back at the end
    faults.install()
    yield
    faults.current.set(None)


def lose(commit: int) -> None:
    faults.current.set(Faults(lose_answers=frozenset({commit})))


@pytest.fixture
def level(chain: Chain) -> Chain:
    """Silver has two rows."""
    know(chain)
    chain.ingest(BY_STATEMENT, [order(0, 1, note="one"), order(1, 2, note="two")])
    chain.merge(BY_STATEMENT)
    return chain


def test_a_merge_without_an_answer_tells_what_it_changed(level, suffers):
    level.ingest(
        BY_STATEMENT, [order(2, 1, op="u", note="uno"), order(3, 2, op="d"), order(4, 3, note="three")]
    )
    lose(2)  # behind the tombstones'

    result = level.merge(BY_STATEMENT)

    told = [result.counts[f"rows_{name}"] for name in ("inserted", "updated", "deleted")]
    assert (result.status, told) == (TableStatus.ADVANCED, [1, 1, 1])


def test_rows_that_were_appended_without_an_answer_are_no_repetitions(chain, suffers):
    know(chain)
    chain.ingest(APPENDED, [order(0, 1, note="one"), order(1, 2, note="two")])
    lose(2)  # behind the making of silver

    result = chain.merge(APPENDED)

    assert (result.status, result.counts["rows_inserted"], result.counts["repeated"]) == (
        TableStatus.ADVANCED,
        2,
        0,
    )


def test_a_column_that_was_added_without_an_answer_is_worth_another_try(level, suffers):
    know(level, NEW)
    level.ingest(BY_STATEMENT, [order(2, 3, writer=NEW, note="three", priority=3)])
    lose(3)  # behind the line in the log of changes, for which its table is made first

    (result,) = merge_tables(level.application(BY_STATEMENT, job=Job.SILVER_MERGE))
    faults.current.set(None)
    level.merge(BY_STATEMENT)

    assert result.error is not None
    assert (result.error.exit_code, result.error.code) == (ExitCode.RETRY, "STORAGE_UNAVAILABLE")
    assert notes(level.silver(BY_STATEMENT)) == {1: "one", 2: "two", 3: "three"}
