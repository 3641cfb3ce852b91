"""What comes behind its time makes of silver and its history what it would have made in time."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from orders import OLD, ORDERS, TOPIC, know, order  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord, Writer, writers  # type: ignore[import-not-found]
from cdc_lakehouse.bronze import table_decoder

LACKS = "__debezium_unavailable_value"
DOCUMENTS = table_of("documents")
_CASE = Case.model_construct(
    name="documents",
    table=Table(
        key=("id",),
        columns={"id": "long", "big": "string"},
        columns_from_batch={2: {"id": "long", "big": "string", "more": "int"}},
    ),
    events=(CaseEvent(at="0@0"), CaseEvent(at="0@1", batch=2)),
)
_WRITERS = writers(_CASE, first_id=300)
KNOWN, UNKNOWN = _WRITERS[1], _WRITERS[2]
HISTORIC = table_of("orders", history=True)


def document(
    offset: int, number: int, *, op: str = "c", big: str | None = None, at: int, writer: Writer = KNOWN
) -> KafkaRecord:
    """`at` is where the log has it: the delete and the create of a changed key have one place."""
    event = CaseEvent(
        at=f"0@{offset}",
        op=op,
        key={"id": number},
        after=None if op == "d" else {"id": number, "big": big, "more": 1},
        position=SourcePosition(sequence=(at - 10, at), lsn=at, tx=at, order=offset),
    )
    return writer.record(event)


def values(chain: Chain) -> dict[int, str | None]:
    return {row["id"]: row["big"] for row in chain.silver(DOCUMENTS)}


@pytest.fixture
def moved(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """The record that told the value of a row, under the key that it had before, could not be decoded."""
    (key_id, key), (value_id, value) = KNOWN.schemas.items()
    chain.registry.register(DOCUMENTS.topics[0], keys={key_id: key}, values={value_id: value})
    monkeypatch.setattr(table_decoder, "PERSISTS", timedelta())
    chain.ingest(
        DOCUMENTS,
        [
            document(0, 1, big="long", at=100, writer=UNKNOWN),
            document(1, 1, op="d", at=200),
            document(2, 2, big=LACKS, at=200),
        ],
    )
    return chain


@pytest.mark.parametrize("on_quarantine", ["continue", "hold"])
def test_a_value_that_is_decoded_late_follows_its_row_to_another_key(moved, on_quarantine):
    table = table_of("documents", on_quarantine=on_quarantine)
    moved.merge(table)
    before = values(moved)
    moved.registry.hidden = UNKNOWN.schemas
    moved.replay(table)

    moved.merge(table)

    assert (before, values(moved)) == ({2: None}, {2: "long"})


def versions(chain: Chain) -> list[tuple[Any, ...]]:
    """Of each row: its note, and from where to where it stood."""
    rows = [
        (row["id"], row["note"], row["_cdc_from"]["row"], (row["_cdc_to"] or {}).get("row"))
        for row in chain.history(HISTORIC)
    ]
    return sorted(rows, key=lambda row: row[:1] + row[2:3])


def test_a_table_that_deleted_rows_before_it_kept_them_opens_no_version_again(chain):
    know(chain)
    chain.ingest(HISTORIC, [order(0, 1, note="one"), order(1, 1, op="d")])
    chain.merge(HISTORIC)
    keeps = table_of("orders", history=True, deletes="soft")
    chain.ingest(keeps, [order(0, 1, note="one", at=2)])
    chain.merge(keeps)
    between = versions(chain)
    chain.ingest(keeps, [order(1, 1, op="d", at=3)])

    chain.merge(keeps)

    assert (between, versions(chain)) == ([(1, "one", 1000, 1010)], [(1, "one", 1000, 1010)])


def test_a_history_beside_silver_that_was_made_anew_without_it_is_made_anew(chain):
    know(chain)
    for offset in range(2):
        chain.ingest(HISTORIC, [order(offset, offset, note="first")])
        chain.merge(HISTORIC)
    shutil.rmtree(Path(urlsplit(chain.lake.silver("orders")).path))
    chain.ingest(ORDERS, [order(2, 1, op="u", note="second")])
    chain.merge(ORDERS)
    chain.ingest(HISTORIC, [order(3, 1, op="u", note="third")])

    chain.merge(HISTORIC)

    assert versions(chain) == [
        (0, "first", 1000, None),
        (1, "first", 1010, 1020),
        (1, "second", 1020, 1030),
        (1, "third", 1030, None),
    ]


def read(offset: int, number: int, *, tx: int, snapshot: str) -> KafkaRecord:
    place = SourcePosition(snapshot=snapshot, sequence=(None, 10 * tx), lsn=10 * tx, tx=tx)
    after = {"id": number, "note": "read"}
    return OLD.record(CaseEvent(at=f"0@{offset}", op="r", key={"id": number}, after=after, position=place))


def test_silver_and_its_history_agree_on_what_a_snapshot_of_one_of_several_topics_takes_away(chain):
    know(chain)
    table = table_of("orders", *ORDERS.topics, "other.orders", history=True)
    sent = order(0, 3)
    broken = replace(sent, topic="other.orders", value=sent.value[:-3])
    known = chain.registry
    known.register("other.orders", keys=known.keys[TOPIC], values=known.values[TOPIC])
    chain.ingest(table, [read(0, 1, tx=30, snapshot="first"), read(1, 2, tx=30, snapshot="last"), broken])
    chain.merge(table)
    chain.ingest(table, [read(2, 1, tx=90, snapshot="last")])

    chain.merge(table)

    assert sorted(row["id"] for row in chain.silver(table)) == [1, 2]
    assert versions(chain) == [(1, "read", 300, 900), (1, "read", 900, None), (2, "read", 300, None)]
