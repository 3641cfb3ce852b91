"""Sound events that nobody can apply pass through the one quarantine: held, replayed, closed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import ORDERS, acknowledging, know, notes, order, planned  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import OnQuarantine
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import UnknownKeyHeldError, UnsupportedEventError
from cdc_lakehouse.lake.quarantine import open_cases

HOLDS = ORDERS.model_copy(update={"on_quarantine": OnQuarantine.HOLD})


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("inapplicable").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    chain.ingest(
        ORDERS,
        [
            order(2, 1, op="z", note="what"),
            order(3, 1, op="u", note="later"),
            order(4, 2, op="u", note="2nd"),
        ],
    )
    return chain


@pytest.fixture
def holding(template: Chain, tmp_path: Path) -> Chain:
    """Bronze holds an event of row 1 with an operation that nobody defined, and a later one."""
    return template.copied_to(tmp_path)


def test_its_key_is_held_and_the_others_are_not(holding):
    result = holding.merge(HOLDS)

    assert notes(holding.silver(ORDERS)) == {1: "one", 2: "2nd"}
    assert (result.counts["parked"], result.errors_by_code) == (1, {"unknown_operation": 1})


def test_others_of_its_key_go_on_where_nothing_is_held(holding):
    holding.merge(ORDERS)

    assert notes(holding.silver(ORDERS)) == {1: "later", 2: "2nd"}


def test_a_replay_finds_no_more_in_it(holding):
    result = holding.replay(ORDERS)

    assert (result.status, result.counts) == (TableStatus.IDLE, {"waiting": 1, "closed": 0})
    assert open_cases(holding.lake.bronze("orders")) == 1


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("op = 'z'", "unknown operation"),
        ("op = 'c', key = NULL", "event without a key"),
        ("op = 'c', position = NULL", "event without a position"),
    ],
)
def test_one_that_an_earlier_release_let_pass_stops_silver(holding, written, kind):
    rows = "UPDATE {t} SET decode_error = NULL, " + written + " WHERE offset = 2"
    holding.sql(rows, holding.lake.bronze("orders"))
    holding.ingest(ORDERS, [], plan=planned(holding, acknowledging(holding), held=(0, 5)))

    with pytest.raises(UnsupportedEventError) as caught:
        holding.merge(ORDERS)

    assert (caught.value.kind, caught.value.count) == (kind, 1)
    assert caught.value.coordinate == "cases.orders/0@2"


def test_an_event_without_a_key_holds_the_table(holding):
    holding.ingest(ORDERS, [replace(order(5, 3), key=None)])

    with pytest.raises(UnknownKeyHeldError) as caught:
        holding.merge(HOLDS)

    assert caught.value.first == "cases.orders/0@5"
