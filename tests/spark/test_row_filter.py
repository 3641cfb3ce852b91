"""`filter`: silver has the rows for which the rule is true now, whatever batches their events came in."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import pytest
from chain import Chain  # type: ignore[import-not-found]
from people import change, know, merged, people  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.errors import InvalidShapeError
from cdc_lakehouse.redaction import traceback_without_values

EU = people(filter="region = 'EU'")
SOFT = people(filter="region = 'EU'", deletes="soft")

# All histories share a lake. Each has moments and keys of its own: tens from its number on.
HISTORIES: dict[str, tuple[list[KafkaRecord], ...]] = {
    "enters": ([change(10, 10, "US", op="c", big="long")], [change(11, 10, "EU", amount=2)]),
    "leaves": ([change(20, 20, "EU", op="c", big="long")], [change(21, 20, "US")]),
    "leaves and comes back": (
        [change(30, 30, "EU", op="c", big="long")],
        [change(31, 30, "US", big="longer")],
        [change(32, 30, "EU", amount=3)],
    ),
    "is another row by now": (
        [change(40, 40, "EU", op="c", big="long")],
        [change(41, 40, op="d"), change(42, 40, "US", op="c", big=None)],
        [change(43, 40, "EU", amount=4)],
    ),
    "never was in": ([change(50, 50, "US", op="c", big="long")], [change(51, 50, "APAC")]),
    "has no region": ([change(60, 60, "EU", op="c", big="long")], [change(61, 60, None)]),
    "an older event comes behind": (
        [change(70, 70, "EU", op="c", big="long")],
        [change(75, 70, "US")],
        [change(73, 70, "EU", amount=2, partition=1)],
    ),
    "older events of another partition come first and last": (
        [change(83, 80, "EU", amount=2, partition=1)],
        [change(85, 80, "US")],
        [change(81, 80, "EU", op="c", big="long", partition=2)],
    ),
    "moves in": (
        [change(90, 90, "US", op="c", big="long")],
        [change(91, 90, op="d"), change(91, 99, "EU", op="c", order=2)],
    ),
    "moves out and comes back": (
        [change(100, 100, "EU", op="c", big="long")],
        [change(101, 100, op="d"), change(101, 109, "US", op="c", order=2)],
        [change(102, 109, "EU", amount=2)],
    ),
    "moves in before its value is there": (
        [change(112, 119, "EU", op="c", order=2, partition=1)],
        [change(110, 110, "US", op="c", big="long"), change(112, 110, op="d")],
    ),
    "is deleted inside": ([change(120, 120, "EU", op="c", big="long")], [change(121, 120, op="d")]),
    "is deleted outside": (
        [change(130, 130, "EU", op="c", big="long")],
        [change(131, 130, "US")],
        [change(132, 130, op="d")],
    ),
}
Rows = dict[int, tuple[Any, ...]]
INSIDE: Rows = {
    10: ("EU", 2, "long"),
    30: ("EU", 3, "longer"),
    40: ("EU", 4, None),
    99: ("EU", 1, "long"),
    109: ("EU", 2, "long"),
    119: ("EU", 1, "long"),
}
OUTSIDE: Rows = dict.fromkeys((20, 50, 60, 70, 80, 90, 110, 130), (None, None, None))
DELETED: Rows = dict.fromkeys((100, 120), ("EU", 1, "long"))
by_history = pytest.mark.parametrize("number", range(1, 14), ids=list(HISTORIES))


def stepwise() -> list[list[KafkaRecord]]:
    """Each history has three partitions to itself: within one, a source never goes back."""
    steps = zip_longest(*(placed(number) for number in range(len(HISTORIES))), fillvalue=[])
    return [[record for batch in step for record in batch] for step in steps]


def placed(number: int) -> list[list[KafkaRecord]]:
    batches = list(HISTORIES.values())[number]
    return [
        [replace(record, partition=3 * number + record.partition) for record in batch] for batch in batches
    ]


def at_once() -> list[list[KafkaRecord]]:
    return [[record for batch in stepwise() for record in batch]]


@pytest.fixture(scope="module")
def lakes(engine, tmp_path_factory) -> dict[str, Rows]:
    """What silver has by key, of each way to merge; a row that is deleted by its own word says so."""
    ways = {
        "stepwise": (EU, stepwise()),
        "at once": (EU, at_once()),
        "soft, stepwise": (SOFT, stepwise()),
        "soft, at once": (SOFT, at_once()),
    }
    found = {}
    for way, (table, batches) in ways.items():
        chain = Chain(engine, root=tmp_path_factory.mktemp("filter").as_uri())
        rows = merged(chain, table, *batches).silver(table)
        found[way] = {
            row["id"]: (row["region"], row["amount"], row["big"], row.get("_cdc_deleted")) for row in rows
        }
    return found


def of_history(rows: Rows, number: int) -> Rows:
    return {key: row for key, row in rows.items() if key // 10 == number}


@pytest.mark.parametrize("way", ["stepwise", "at once"])
@by_history
def test_silver_has_the_rows_for_which_the_rule_is_true_now(number, way, lakes):
    expected = {key: (*row, None) for key, row in INSIDE.items()}

    assert of_history(lakes[way], number) == of_history(expected, number)


@pytest.mark.parametrize("way", ["soft, stepwise", "soft, at once"])
@by_history
def test_a_soft_table_keeps_the_key_of_a_row_outside_and_none_of_its_values(number, way, lakes):
    expected = {key: (*row, False) for key, row in INSIDE.items()}
    expected |= {key: (*row, True) for key, row in (OUTSIDE | DELETED).items()}

    assert of_history(lakes[way], number) == of_history(expected, number)


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    """Bronze has a row, silver nothing."""
    chain = Chain(engine, root=tmp_path_factory.mktemp("rule").as_uri())
    know(chain)
    chain.ingest(people(), [change(0, 1, "EU", op="c", big="long")])
    return chain


def test_a_rule_on_an_untold_column_takes_the_value_that_bronze_knows(template, tmp_path):
    chain, table = template.copied_to(tmp_path), people(filter="big = 'long'")
    chain.merge(table)
    chain.ingest(table, [change(1, 1, "EU", amount=2)])
    chain.merge(table)

    assert [(row["id"], row["amount"], row["big"]) for row in chain.silver(table)] == [(1, 2, "long")]


def test_the_result_counts_rows_outside(template, tmp_path):
    chain = template.copied_to(tmp_path)
    counts = chain.merge(people(filter="region = 'US'")).counts

    assert (counts["events"], counts["rows_inserted"], counts["rows_outside"]) == (1, 0, 1)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("regoin = 'EU'", "UNRESOLVED_COLUMN"),
        ("region", "FILTER_NOT_BOOLEAN"),
        ("region = ", "PARSE_SYNTAX_ERROR"),
        ("_cdc_op = 'u'", "UNRESOLVED_COLUMN"),
        ("sum(amount) > 1", "INVALID_WHERE_CONDITION"),
        ("rand() > 0.5", "is not told by the row alone"),
        ("current_date() > '2026-01-01'", "is not told by the row alone"),
        ("amount in (select 1)", "is not told by the row alone"),
    ],
)
def test_a_rule_that_is_none_stops_silver_with_the_reason(rule, reason, template):
    with pytest.raises(InvalidShapeError, match=reason) as caught:
        template.merge(people(filter=rule))

    assert (caught.value.table, caught.value.setting) == ("people", "filter")


def test_a_value_that_a_cast_cannot_take_stops_silver_by_its_coordinate_alone(chain, capfd):
    table = people(filter="cast(big as int) > 0")
    know(chain)
    sent = [change(number, number, "EU", op="c", big=str(number)) for number in range(1, 40)]
    chain.ingest(table, [*sent, change(50, 17, "EU", big="alice@example.com"), change(51, 60, "US", big="x")])

    with pytest.raises(InvalidShapeError) as caught:
        chain.merge(table)

    assert (caught.value.table, caught.value.setting) == ("people", "filter")
    assert re.match(
        r"a value of cases\.people/0@5[01] does not fit it \(CAST_INVALID_INPUT\); ", caught.value.problem
    )
    assert "alice" not in capfd.readouterr().err + traceback_without_values(caught.value)
