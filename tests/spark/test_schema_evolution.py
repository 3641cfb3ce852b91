"""Silver follows the columns of the source where no value is lost by it (decision 0026)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from chain import table_of  # type: ignore[import-not-found]
from shapes import (  # type: ignore[import-not-found]
    BESIDE,
    NAME,
    SECOND,
    SHAPED,
    THIRD,
    know,
    logged,
    record,
    rows,
    shapes,
    types,
)


def clock(*parts: int) -> datetime:
    """A time without a zone, as TIMESTAMP_NTZ is."""
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


def test_the_first_timestamp_of_a_table_is_added_like_any_column(chain):
    old, new, newer = shapes({}, {"b": "timestamp"}, {"b": "timestamp", "c": "int"})
    know(chain, old)
    chain.ingest(SHAPED, [record(old, 0, 1)])
    chain.merge(SHAPED)
    know(chain, new)
    chain.ingest(SHAPED, [record(new, 1, 2, b=0)])
    chain.merge(SHAPED)
    know(chain, newer)
    chain.ingest(SHAPED, [record(newer, 2, 3, b=1, c=3)])

    chain.merge(SHAPED)

    assert rows(chain) == {
        1: {"b": None, "c": None},
        2: {"b": clock(1970, 1, 1), "c": None},
        3: {"b": clock(1970, 1, 1, 0, 0, 0, 1), "c": 3},
    }


WIDENING = {
    "short_int": ("short", "int", -3, 70_000, "int"),
    "short_long": ("short", "long", 4, 2**40, "bigint"),
    "int_long": ("int", "long", 5, 2**41, "bigint"),
    "float_double": ("float", "double", 0.5, 0.1, "double"),
    "digits": ("decimal(5,2)", "decimal(9,2)", "1.25", "1234567.89", "decimal(9,2)"),
    "scale": ("decimal(5,2)", "decimal(9,4)", "1.25", "12345.6789", "decimal(9,4)"),
    "scale_alone": ("decimal(5,2)", "decimal(5,4)", "123.25", "1.2345", "decimal(7,4)"),
    "day": ("date", "timestamp", 19_000, 1_700_000_000_000_001, "timestamp_ntz"),
}
"""Column -> what it was and is, a value of each, and silver's type then."""


def test_every_type_widens_where_no_value_changes(chain):
    old, new = shapes(
        {name: each[0] for name, each in WIDENING.items()}, {name: each[1] for name, each in WIDENING.items()}
    )
    know(chain, old)
    chain.ingest(SHAPED, [record(old, 0, 1, **{name: each[2] for name, each in WIDENING.items()})])
    chain.merge(SHAPED)
    know(chain, new)
    chain.ingest(SHAPED, [record(new, 1, 2, **{name: each[3] for name, each in WIDENING.items()})])

    chain.merge(SHAPED)

    assert types(chain) == {name: each[4] for name, each in WIDENING.items()}
    assert rows(chain) == {
        1: {
            "short_int": -3,
            "short_long": 4,
            "int_long": 5,
            "float_double": 0.5,
            "digits": Decimal("1.25"),
            "scale": Decimal("1.2500"),
            "scale_alone": Decimal("123.2500"),
            "day": clock(2022, 1, 8),
        },
        2: {
            "short_int": 70_000,
            "short_long": 2**40,
            "int_long": 2**41,
            "float_double": 0.1,
            "digits": Decimal("1234567.89"),
            "scale": Decimal("12345.6789"),
            "scale_alone": Decimal("1.2345"),
            "day": clock(2023, 11, 14, 22, 13, 20, 1),
        },
    }
    assert {(change, column) for change, column, *_ in logged(chain)} == {
        ("widened", name) for name in WIDENING
    }


def test_labels_of_an_enum_and_an_order_of_columns_change_nothing(chain):
    old, labels, order = shapes(
        {"a": "enum(x,y)", "b": "int"}, {"a": "enum(x,y,z)", "b": "int"}, {"b": "int", "a": "enum(x,y,z)"}
    )
    know(chain, old)
    chain.ingest(SHAPED, [record(old, 0, 1, a="x", b=1)])
    chain.merge(SHAPED)
    know(chain, labels, order)
    chain.ingest(SHAPED, [record(labels, 1, 2, a="z", b=2), record(order, 2, 3, a="y", b=3)])

    chain.merge(SHAPED)

    assert list(types(chain)) == ["a", "b"]
    assert rows(chain) == {1: {"a": "x", "b": 1}, 2: {"a": "z", "b": 2}, 3: {"a": "y", "b": 3}}


def test_two_shapes_of_one_batch_and_batches_that_wait_are_taken_at_once(chain):
    one, two, three = shapes(
        {"a": "int"}, {"a": "int", "b": "int"}, {"a": "long", "b": "long", "c": "string"}
    )
    know(chain, one)
    chain.ingest(SHAPED, [record(one, 0, 1, a=1)])
    chain.merge(SHAPED)
    know(chain, two)
    chain.ingest(SHAPED, [record(one, 1, 2, a=2), record(two, 2, 3, a=3, b=3)])
    know(chain, three)
    chain.ingest(SHAPED, [record(three, 3, 2, op="u", a=2**40, b=4, c="x"), record(two, 4, 4, a=4, b=5)])

    chain.merge(SHAPED)

    assert rows(chain) == {
        1: {"a": 1, "b": None, "c": None},
        2: {"a": 2**40, "b": 4, "c": "x"},
        3: {"a": 3, "b": 3, "c": None},
        4: {"a": 4, "b": 5, "c": None},
    }
    assert logged(chain) == [
        ("widened", "a", "int", "bigint", [THIRD]),
        ("added", "b", None, "bigint", [SECOND, THIRD]),
        ("added", "c", None, "string", [THIRD]),
    ]


def test_a_renamed_table_goes_on_in_its_second_topic(chain):
    (shape,) = shapes({"a": "int"})
    renamed = table_of(NAME, *SHAPED.topics, "cases.renamed", shared_keys="one_row")
    know(chain, shape)
    chain.ingest(SHAPED, [record(shape, 0, 1, a=1), record(shape, 1, 2, a=2)])
    chain.merge(SHAPED)
    know(chain, shape, topic="cases.renamed")
    chain.ingest(renamed, [replace(record(shape, 7, 2, op="u", a=3), topic="cases.renamed", offset=0)])

    chain.merge(renamed)

    assert rows(chain) == {1: {"a": 1}, 2: {"a": 3}}


def test_every_kind_of_change_while_nothing_ran_is_met_in_one_batch(chain):
    old, new = shapes(
        {"gone": "int", "was": "string", "wide": "int", "scale": "decimal(6,2)", "other": "int"},
        {"is": "string", "wide": "long", "scale": "decimal(6,3)", "other": "string", "added": "date"},
    )
    know(chain, old)
    chain.ingest(BESIDE, [record(old, 0, 1, gone=1, was="a", wide=1, scale="1.25", other=1)])
    chain.merge(BESIDE)
    know(chain, new)
    more = {"gone": 2, "was": "b", "wide": 2, "scale": "2.25", "other": 2}
    changed = {"is": "c", "wide": 2**40, "scale": "3.125", "other": "three", "added": 19_000}
    chain.ingest(BESIDE, [record(old, 1, 2, **more), record(new, 2, 3, **changed)])

    chain.merge(BESIDE)

    old_only = {"is": None, "added": None, "other__v2": None}
    assert rows(chain) == {
        1: {"gone": 1, "was": "a", "wide": 1, "scale": Decimal("1.250"), "other": 1, **old_only},
        2: {"gone": 2, "was": "b", "wide": 2, "scale": Decimal("2.250"), "other": 2, **old_only},
        3: {
            "gone": None, "was": None, "wide": 2**40, "scale": Decimal("3.125"), "other": None,
            "is": "c", "added": date(2022, 1, 8), "other__v2": "three",
        },
    }  # fmt: skip
