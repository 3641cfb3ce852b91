"""Bronze that is read again beside a silver that stays: what could not be decoded before comes to silver."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import NEW, ORDERS, acknowledging, know, order, planned  # type: ignore[import-not-found]

from cdc_lakehouse.bronze import table_decoder
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import UnknownSchemaError
from cdc_lakehouse.lake.state import read_state

FIRST = [order(0, 1, note="one"), order(1, 2, note="two")]
LATER = [
    order(2, 1, op="u", note="unreadable", priority=2, writer=NEW),  # older than the next of its key
    order(3, 1, op="u", note="newest"),
    order(4, 3, note="unreadable", priority=1, writer=NEW),  # the only event of its key
    order(5, 2, op="u", note="unreadable", priority=3, writer=NEW),  # its key is deleted then
    order(6, 2, op="d"),
]
WHOLE = {1: "newest", 3: "unreadable"}


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    found = Chain(engine, root=tmp_path_factory.mktemp("read_again").as_uri())
    know(found)
    found.ingest(ORDERS, FIRST)
    found.merge(ORDERS)
    with pytest.raises(UnknownSchemaError):
        found.ingest(ORDERS, LATER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_decoder, "PERSISTS", timedelta())
        found.ingest(ORDERS, LATER)
    found.merge(ORDERS)
    know(found, NEW)
    return found


@pytest.fixture
def chain(template: Chain, tmp_path: Path) -> Chain:
    """Silver has passed three records that nobody could decode; now their schema is known."""
    return template.copied_to(tmp_path)


def notes(chain: Chain) -> dict[int, str]:
    return {row["id"]: row["note"] for row in chain.silver(ORDERS)}


def folder(chain: Chain) -> Path:
    return Path(urlsplit(chain.lake.bronze(ORDERS.name)).path)


def test_a_bronze_that_was_deleted_and_read_again(chain):
    assert notes(chain) == {1: "newest"}
    shutil.rmtree(folder(chain))
    chain.ingest(ORDERS, [*FIRST, *LATER])

    assert chain.merge(ORDERS).status is TableStatus.ADVANCED
    assert notes(chain) == WHOLE
    assert chain.merge(ORDERS).status is TableStatus.IDLE


def test_a_bronze_that_was_restored_and_read_again(chain):
    uri = chain.lake.bronze(ORDERS.name)
    chain.sql("RESTORE TABLE {t} TO VERSION AS OF 1", uri)
    plan = planned(chain, acknowledging(chain), held=(0, 7))
    chain.ingest(ORDERS, LATER, plan=plan)

    assert chain.merge(ORDERS).status is TableStatus.ADVANCED
    assert notes(chain) == WHOLE


def test_a_bronze_that_is_as_it_was_is_not_looked_at_again(chain):
    before = read_state(chain.lake.silver(ORDERS.name), table=ORDERS.name)

    assert chain.merge(ORDERS).status is TableStatus.IDLE
    assert read_state(chain.lake.silver(ORDERS.name), table=ORDERS.name) == before


def test_a_bronze_that_was_made_again_without_a_column_keeps_what_was_sent_last(chain):
    chain.ingest(ORDERS, [order(7, 7, note="seven", priority=7, writer=NEW)])
    chain.merge(ORDERS)
    shutil.rmtree(folder(chain))
    before = [order(each, 9, op="u", note="before") for each in range(8)]
    chain.registry.values.clear()
    know(chain)
    chain.ingest(ORDERS, [*before, order(8, 7, op="u", note="without it")])

    chain.merge(ORDERS)

    rows = {row["id"]: (row["note"], row["priority"]) for row in chain.silver(ORDERS)}
    assert rows[7] == ("without it", 7)
