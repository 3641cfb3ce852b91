"""Which columns silver has, under which names, and which masked: planned without Spark."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from cdc_lakehouse.config.column_choice import ColumnChoice, Mask
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.errors import InvalidShapeError
from cdc_lakehouse.silver.columns.shape import Shape, plan_shape, reshaped

ID, NAME, MAIL, TOTAL = (
    Column("id", pa.int64()),
    Column("name", pa.string()),
    Column("mail", pa.string()),
    Column("total", pa.int32()),
)
BESIDE = Column("total__v2", pa.string(), side_of="total")
TAGS = Column("tags", pa.list_(pa.string()))
COLUMNS = TableColumns(key=(ID,), row=(ID, NAME, MAIL, TOTAL))
WIDE = TableColumns(key=(ID,), row=(ID, TOTAL, BESIDE, TAGS))


def planned(columns: TableColumns = COLUMNS, **choice: object) -> Shape:
    return plan_shape(columns, ColumnChoice.model_validate(choice), table="t")


def names(shape: Shape) -> list[str]:
    return [column.name for column in shape.columns.row]


def refusal(columns: TableColumns = COLUMNS, **choice: object) -> tuple[str, str]:
    with pytest.raises(InvalidShapeError) as caught:
        planned(columns, **choice)
    return caught.value.setting, caught.value.problem


def test_without_a_choice_silver_has_what_bronze_has():
    shape = planned()

    assert shape.changes_nothing
    assert shape.columns == COLUMNS


@pytest.mark.parametrize(
    "choice",
    [{"include": ["id", "total"]}, {"exclude": ["name", "mail"]}, {"mask": {"name": "drop", "mail": "drop"}}],
    ids=["include", "exclude", "drop"],
)
def test_columns_that_are_left_out_are_known_as_such(choice):
    shape = planned(**choice)

    assert names(shape) == ["id", "total"]
    assert shape.left_out == {"name", "mail"}


def test_a_renamed_key_is_renamed_in_key_and_row():
    shape = planned(rename={"id": "customer_id"})

    assert [column.name for column in shape.columns.key] == ["customer_id"]
    assert names(shape) == ["customer_id", "name", "mail", "total"]


def test_a_hash_is_a_text_and_a_masked_null_keeps_its_type():
    shape = planned(mask={"id": "hash", "total": None})

    assert [column.type for column in shape.columns.row] == [
        pa.string(),
        pa.string(),
        pa.string(),
        pa.int32(),
    ]
    assert [each.mask for each in shape.row] == [Mask.HASH, None, None, Mask.NULL]


def test_a_column_beside_another_is_treated_like_it():
    renamed, masked = planned(WIDE, rename={"total": "sum"}), planned(WIDE, mask={"total": "hash"})

    assert names(renamed) == ["id", "sum", "sum__v2", "tags"]
    assert [column.side_of for column in renamed.columns.row] == [None, None, "sum", None]
    assert [each.mask for each in masked.row] == [None, Mask.HASH, Mask.HASH, None]
    assert names(planned(WIDE, exclude=["total"])) == ["id", "tags"]
    assert names(planned(WIDE, include=["id", "total"])) == ["id", "total", "total__v2"]


def test_a_column_beside_another_may_be_named_itself():
    assert names(planned(WIDE, exclude=["total__v2"])) == ["id", "total", "tags"]
    assert names(planned(WIDE, include=["id", "total__v2"])) == ["id", "total__v2"]


@pytest.mark.parametrize(
    ("choice", "setting"),
    [
        ({"exclude": ["mial"]}, "columns.exclude"),
        ({"rename": {"mial": "m"}}, "columns.rename"),
        ({"mask": {"mial": "hash"}}, "columns.mask"),
    ],
)
def test_a_name_that_bronze_lacks_is_told_with_the_nearest_one(choice, setting):
    assert refusal(**choice) == (setting, "bronze has no column mial; did you mean mail?")


@pytest.mark.parametrize(
    ("choice", "setting"),
    [
        ({"include": ["name"]}, "columns.include"),
        ({"exclude": ["id"]}, "columns.exclude"),
        ({"mask": {"id": "drop"}}, "columns.mask"),
        ({"mask": {"id": None}}, "columns.mask"),
    ],
)
def test_silver_is_never_without_its_key(choice, setting):
    problem = "id is part of the key; it may be renamed or hashed, and silver needs it"

    assert refusal(**choice) == (setting, problem)


def test_two_columns_never_get_one_name():
    assert refusal(rename={"mail": "Name"}) == (
        "columns.rename",
        "name and mail would both be Name in silver",
    )


def test_names_may_change_places():
    assert names(planned(rename={"mail": "name", "name": "mail"})) == ["id", "mail", "name", "total"]


def test_nested_values_are_not_hashed():
    assert refusal(WIDE, mask={"tags": "hash"})[0] == "columns.mask"


def changed(before: Mapping[str, object], now: Mapping[str, object], *existing: str) -> tuple[str, ...]:
    choices = (ColumnChoice.model_validate(each) for each in (before, now))
    return reshaped(COLUMNS, *choices, existing=existing or ("id", "name", "mail", "total"))


def test_another_way_to_say_the_same_changes_nothing():
    include, exclude = {"include": ["id", "name"]}, {"exclude": ["mail", "total"]}

    assert changed(include, exclude, "id", "name") == ()


def test_columns_that_become_something_else_are_named():
    now = {"exclude": ["name"], "rename": {"mail": "address"}, "mask": {"total": None}}

    assert changed({}, now) == ("name", "mail", "total")


def test_a_column_that_was_left_out_comes_back_only_with_all_its_values():
    assert changed({"exclude": ["mail"]}, {}, "id", "name", "total") == ("mail",)


def test_a_column_that_silver_does_not_have_yet_may_become_anything():
    assert changed({}, {"exclude": ["mail"]}, "id", "name", "total") == ()
