"""Which columns a table gets for types that its old ones cannot take."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lakehouse.debezium.columns import Column, TableColumns, column_for, evolve, evolve_leniently
from cdc_lakehouse.debezium.incompatible import with_newest_types, with_side_columns
from cdc_lakehouse.errors import IncompatibleSchemaError

ID = Column("id", pa.int64())
INT, TEXT = Column("a", pa.int32()), Column("a", pa.string())
BESIDE = Column("a__v2", pa.string(), side_of="a")


def table(*row: Column) -> TableColumns:
    return TableColumns(key=(ID,), row=(ID, *row))


def test_a_type_that_does_not_fit_gets_a_column_at_the_end():
    b = Column("b", pa.int32())

    assert with_side_columns(table(INT, b), table(TEXT, b)) == table(INT, b, BESIDE)


def test_the_same_schemas_again_change_nothing():
    grown = with_side_columns(table(INT), table(TEXT))

    assert with_side_columns(with_side_columns(grown, table(INT)), table(TEXT)) == grown


def test_the_first_column_that_can_widen_does():
    long, wide = Column("a", pa.int64()), Column("a", pa.date32())
    grown = with_side_columns(with_side_columns(table(INT, BESIDE), table(long)), table(wide))

    assert grown == table(long, BESIDE, Column("a__v3", pa.date32(), side_of="a"))


def test_a_column_that_does_not_fit_two_of_its_types_gets_the_next_number():
    date = Column("a", pa.date32())
    stamp = Column("a", pa.timestamp("us"))
    grown = with_side_columns(table(INT, BESIDE), table(date))

    assert with_side_columns(grown, table(stamp)) == table(
        INT, BESIDE, Column("a__v3", pa.timestamp("us"), side_of="a")
    )


@pytest.mark.parametrize("theirs", ["a__v2", "A__V2"])
def test_a_name_of_the_source_is_passed_over(theirs):
    own = Column(theirs, pa.string())

    assert with_side_columns(table(INT), table(TEXT, own)) == table(
        INT, own, Column("a__v3", pa.string(), side_of="a")
    )


def test_a_column_of_the_source_that_comes_later_is_not_mixed_with_a_side_column():
    own = Column("a__v2", pa.string())

    assert with_side_columns(table(INT, BESIDE), table(TEXT, own)) == table(
        INT, BESIDE, Column("a__v2__v2", pa.string(), side_of="a__v2")
    )


def test_without_the_policy_such_a_column_fits_nowhere():
    own = Column("a__v2", pa.string())

    with pytest.raises(IncompatibleSchemaError):
        evolve(table(INT, BESIDE), table(TEXT, own), table="t")
    assert evolve_leniently(table(INT, BESIDE), table(TEXT, own)) == table(INT, BESIDE)
    assert column_for("a__v2", pa.string(), table(INT, BESIDE).row) is None


def test_a_column_of_the_key_gets_none():
    new = TableColumns(key=(Column("id", pa.string()),), row=(Column("id", pa.string()), TEXT))

    assert with_side_columns(table(INT), new) == table(INT, BESIDE)


def test_columns_alike_but_for_case_get_none():
    assert with_side_columns(table(INT), table(Column("A", pa.string()))) == table(INT)


def test_a_table_that_has_side_columns_keeps_to_them_under_any_policy():
    assert evolve(table(INT, BESIDE), table(TEXT), table="t") == table(INT, BESIDE)


def test_the_newest_type_counts_while_there_are_no_rows():
    old, new = (
        table(INT, Column("b", pa.int64())),
        table(TEXT, Column("b", pa.int32()), Column("c", pa.int32())),
    )

    assert with_newest_types(old, new) == table(TEXT, Column("b", pa.int64()), Column("c", pa.int32()))
