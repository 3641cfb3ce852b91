"""`key` of a table: what a pipeline file may say, and what is told about the rest."""

from __future__ import annotations

import pytest

from cdc_lakehouse.errors import InvalidPipelineError


def test_a_table_names_the_columns_that_tell_its_rows_apart(load_orders):
    assert load_orders("key: [region, number]").key == ("region", "number")
    assert load_orders("group: slow").key is None


def test_a_key_has_the_names_of_silver(load_orders):
    table = load_orders("columns: {rename: {nr: number}, mask: {mail: hash}}\n    key: [number, mail]")

    assert table.key == ("number", "mail")


def test_the_topic_of_several_may_be_a_column_of_the_key(load_orders):
    table = load_orders("topic_column: shard\n    shared_keys: one_row")

    assert (table.topic_column, table.shared_keys) == ("shard", "one_row")
    assert load_orders("group: slow").shared_keys == "refuse"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "mode: append\n    topic_column: shard",
            "`topic_column` is for silver with a row per key; with `mode: append` it has `_cdc_topic`",
        ),
        ("topic_column: _cdc_topic", "`topic_column` '_cdc_topic': names that start with _cdc_ are ours"),
        ("shared_keys: yes", "`shared_keys` must be 'refuse' or 'one_row', not 'yes'"),
        ("key: id", "`key` must be a list, not 'id'"),
        ("key: []", "`key` is empty"),
        ("key: [id, ID]", "`key` names 'ID' twice"),
        ("key: [_cdc_op]", "`key` names '_cdc_op': columns that start with _cdc_ are ours"),
        (
            "mode: append\n    key: [id]",
            "`key` is for silver with a row per key, and the table says `mode: append`",
        ),
        (
            "drop_columns: [note]\n    key: [note]",
            "`key` names 'note', which `drop_columns` keeps out of the lake",
        ),
        (
            "columns: {exclude: [note]}\n    key: [note]",
            "`key` names 'note', which `columns` keeps out of silver",
        ),
        (
            "columns: {rename: {nr: number}}\n    key: [nr]",
            "`key` names 'nr', which `columns` calls 'number' in silver",
        ),
        (
            "columns: {mask: {mail: null}}\n    key: [mail]",
            "`key` names 'mail', which is always NULL by `columns`",
        ),
    ],
)
def test_what_cannot_be_a_key_is_told(line, problem, load_orders):
    with pytest.raises(InvalidPipelineError) as caught:
        load_orders(line)

    assert caught.value.problem == problem
