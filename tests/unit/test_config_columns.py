"""`columns` and `filter` of a table: what a pipeline file may say, and what is told about the rest."""

from __future__ import annotations

import pytest

from cdc_lakehouse.config.column_choice import ColumnChoice, Mask
from cdc_lakehouse.config.mask_secret import mask_secret
from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.errors import InvalidPipelineError, MissingConnectionError


def test_a_table_says_which_columns_and_rows_silver_has(load_orders):
    table = load_orders(
        "columns: {exclude: [note], rename: {id: number}, mask: {mail: hash, age: null, sex: drop}}"
    )

    assert table.columns == ColumnChoice(
        exclude=("note",),
        rename={"id": "number"},
        mask={"mail": Mask.HASH, "age": Mask.NULL, "sex": Mask.DROP},
    )
    assert load_orders("filter: \"region = 'EU'\"").filter == "region = 'EU'"


def test_without_a_word_silver_has_all(load_orders):
    table = load_orders("group: slow")

    assert table.columns.is_all
    assert table.filter is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("columns: [id]", "`columns` must be a mapping of keys to values"),
        ("columns: {include: [a], exclude: [b]}", "`columns` has `include` or `exclude`, not both"),
        (
            "columns: {exclude: [a], rename: {a: b}}",
            "`columns` leaves 'a' out and says what it becomes",
        ),
        (
            "columns: {include: [b], mask: {a: hash}}",
            "`columns` leaves 'a' out and says what it becomes",
        ),
        ("columns: {rename: {a: c, b: C}}", "`columns` gives 'a' and 'b' one name, 'C'"),
        (
            "columns: {rename: {a: _cdc_op}}",
            "`columns.rename.a` '_cdc_op': names that start with _cdc_ are ours",
        ),
        (
            "columns: {rename: {a: 1b}}",
            "`columns.rename.a` '1b' is not a column's name in silver: "
            "letters, digits and '_', no digit first",
        ),
        ("columns: {mask: {a: md5}}", "`columns.mask.a` must be 'drop', 'null' or 'hash', not 'md5'"),
        ("columns: {masks: {a: hash}}", "unknown key `masks`; did you mean `mask`?"),
        ("filter: ''", "`filter` is empty"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_line(load_orders, line, problem):
    with pytest.raises(InvalidPipelineError) as caught:
        load_orders(line)

    assert (caught.value.where, caught.value.problem) == (":9, table orders", problem)


def storage(**extra: str) -> Connection:
    return Connection(Role.STORAGE, extra=extra)


def test_the_secret_of_hashes_never_shows_itself():
    secret = mask_secret(storage(mask_secret="nobody may ever read this"))

    assert secret.key == b"nobody may ever read this"
    assert repr(secret) == "MaskSecret()"


def test_two_secrets_are_told_apart_without_telling_them():
    one, other = (mask_secret(storage(mask_secret=text)) for text in ("a" * 16, "b" * 16))

    assert len({one.check(), other.check()}) == 2
    assert mask_secret(storage(mask_secret="a" * 16)).check() == one.check()


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({}, "its extra has no `mask_secret`, and a table's `columns.mask` asks for a hash"),
        ({"mask_secret": "short"}, "its mask_secret is shorter than 16 characters"),
    ],
)
def test_a_secret_that_cannot_be_used_is_told_by_its_connection(extra, problem):
    with pytest.raises(MissingConnectionError) as caught:
        mask_secret(storage(**extra))

    assert caught.value.problem == problem
