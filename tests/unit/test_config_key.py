"""`key` of a table: what a pipeline file may say, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lakehouse.config.loader import load_pipeline
from cdc_lakehouse.errors import InvalidPipelineError

HEAD = """\
version: 1
name: shop
owner: data-platform
schedule: "*/15 * * * *"
start_date: 2026-01-01
tables:
  - name: orders
    topics: [shop.public.orders]
"""


@pytest.fixture
def load(tmp_path: Path):
    def written(line: str):
        path = tmp_path / "shop.yaml"
        path.write_text(f"{HEAD}    {line}\n", encoding="utf-8")
        return load_pipeline(path).table("orders")

    return written


def test_a_table_names_the_columns_that_tell_its_rows_apart(load):
    assert load("key: [region, number]").key == ("region", "number")
    assert load("group: slow").key is None


def test_a_key_has_the_names_of_silver(load):
    table = load("columns: {rename: {nr: number}, mask: {mail: hash}}\n    key: [number, mail]")

    assert table.key == ("number", "mail")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
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
def test_what_cannot_be_a_key_is_told(line, problem, load):
    with pytest.raises(InvalidPipelineError) as caught:
        load(line)

    assert caught.value.problem == problem
