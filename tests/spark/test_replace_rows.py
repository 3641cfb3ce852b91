"""Changes that tell whole rows are put in the place of old ones by where those are (decision 0031)."""

from __future__ import annotations

from pathlib import Path

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import OLD, ORDERS, know, notes, order  # type: ignore[import-not-found]

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord  # type: ignore[import-not-found]

WITHOUT_VECTORS = table_of("orders", deletion_vectors=False)
VECTORS = "delta.enableDeletionVectors"


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("replaced").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="a"), order(1, 2, note="b"), order(2, 3, note="c")])
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def stocked(template: Chain, tmp_path: Path) -> Chain:
    return template.copied_to(tmp_path)


def of_transaction(offset: int, number: int, *, tx: int, lsn: int, commit: int, note: str) -> KafkaRecord:
    position = SourcePosition(sequence=(commit, lsn), lsn=lsn, tx=tx, order=1)
    after = {"id": number, "note": note}
    event = CaseEvent(at=f"0@{offset}", op="u", key={"id": number}, after=after, position=position)
    return OLD.record(event)


def files(chain: Chain) -> set[str]:
    return set(DeltaTable(chain.lake.silver("orders")).file_uris())


def properties(chain: Chain) -> dict[str, str]:
    return dict(DeltaTable(chain.lake.silver("orders")).metadata().configuration)


def test_an_update_a_create_and_a_delete_are_applied(stocked: Chain):
    stocked.ingest(ORDERS, [order(3, 1, op="u", note="A"), order(4, 2, op="d"), order(5, 4, note="d")])

    counts = stocked.merge(ORDERS).counts

    assert notes(stocked.silver(ORDERS)) == {1: "A", 3: "c", 4: "d"}
    assert (counts["rows_inserted"], counts["rows_updated"], counts["rows_deleted"]) == (1, 1, 1)


def test_rows_that_did_not_change_stay_in_their_file(stocked: Chain):
    before = files(stocked)
    stocked.ingest(ORDERS, [order(3, 1, op="u", note="A")])

    stocked.merge(ORDERS)

    assert before < files(stocked)


def test_a_row_that_was_marked_as_gone_twice_stays_gone(stocked: Chain):
    stocked.ingest(ORDERS, [order(3, 1, op="d")])
    stocked.merge(ORDERS)
    stocked.ingest(ORDERS, [order(4, 2, op="d")])

    stocked.merge(ORDERS)

    assert notes(stocked.silver(ORDERS)) == {3: "c"}


def test_a_transaction_that_is_sent_again_behind_a_later_commit_changes_nothing_newer(stocked: Chain):
    stocked.ingest(ORDERS, [of_transaction(3, 1, tx=77, lsn=5_010, commit=5_000, note="newest")])
    stocked.merge(ORDERS)
    stocked.ingest(ORDERS, [of_transaction(4, 1, tx=77, lsn=5_005, commit=5_001, note="older")])

    counts = stocked.merge(ORDERS).counts

    assert notes(stocked.silver(ORDERS))[1] == "newest"
    assert (counts["rows_inserted"], counts["rows_updated"], counts["rows_deleted"]) == (0, 0, 0)


def test_a_table_without_deletion_vectors_never_has_the_feature_nor_has_its_history(chain: Chain):
    table = table_of("orders", deletion_vectors=False, history=True)
    know(chain)
    chain.ingest(table, [order(0, 1, note="a"), order(1, 2, note="b")])
    chain.merge(table)
    chain.ingest(table, [order(2, 1, op="u", note="A")])

    chain.merge(table)

    tables = (chain.lake.silver("orders"), chain.lake.history("orders"))
    features = [DeltaTable(uri).protocol().reader_features or [] for uri in tables]
    assert notes(chain.silver(table)) == {1: "A", 2: "b"}
    assert [found for found in features if "deletionVectors" in found] == []


def test_a_table_whose_deletion_vectors_are_switched_off_gets_no_more(stocked: Chain):
    stocked.ingest(WITHOUT_VECTORS, [order(3, 1, op="u", note="A")])

    stocked.merge(WITHOUT_VECTORS)

    assert notes(stocked.silver(ORDERS)) == {1: "A", 2: "b", 3: "c"}
    assert properties(stocked)[VECTORS] == "false"
