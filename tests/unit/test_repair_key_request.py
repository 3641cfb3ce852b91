"""Keys that a person names: read from the form or from a file, refused without a word of their values."""

from __future__ import annotations

import pytest

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.errors import RepairRefusedError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.erasure.key_request import MOST_KEYS, KeyRequest, read_request

ORDERS = Table(name="orders", topics=("shop.public.orders",))


@pytest.fixture
def lake(tmp_path) -> Lake:
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def read(lake: Lake, **options: str) -> KeyRequest | None:
    return read_request(lake, ORDERS, options)


def test_keys_are_lines_and_their_order_does_not_matter(lake):
    one, other = read(lake, keys='{"id": 1}\n\n{"id": 2}'), read(lake, keys='{"id": 2}\n{"id": 1}\n')

    assert one is not None
    assert other is not None
    assert (one.keys, one.columns) == (({"id": 1}, {"id": 2}), ("id",))
    assert one.digest == other.digest


def test_a_file_of_the_folder_names_the_same_keys_as_the_form(lake):
    uri = f"{lake.operations}/erase/request.jsonl"
    files.write_text(uri, '{"id": 1}\n')

    by_name, by_uri, by_form = (
        read(lake, keys_file="request.jsonl"),
        read(lake, keys_file=uri),
        read(lake, keys='{"id": 1}'),
    )

    assert by_name == by_uri
    assert by_name is not None
    assert by_form is not None
    assert (by_name.file, by_form.file) == (uri, "")
    assert by_name.digest == by_form.digest


def test_options_without_keys_ask_for_nothing(lake):
    assert read(lake) is None
    assert read(lake, keys=" \n") is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"keys": '{"id": 1}', "where": "id = 1"}, "its options keys and where name keys"),
        ({"keys": '{"id": 1}\n{"no": "secret"}'}, "line 2 of its keys"),
        ({"keys": "secret"}, "line 1 of its keys"),
        ({"keys": '["secret"]'}, "line 1 of its keys"),
        ({"keys": "{}"}, "line 1 of its keys"),
        ({"keys_file": "secret/../../x"}, "`keys_file` names a file of the folder"),
        ({"keys": '{"id": 1}\n' * (MOST_KEYS + 1)}, "1001 keys are named, 1000 at most"),
    ],
)
def test_bad_input_is_refused_without_its_text(lake, options, problem):
    with pytest.raises(RepairRefusedError, match=problem) as caught:
        read(lake, **options)

    assert "secret" not in str(caught.value)


def test_a_request_shows_no_key_when_it_is_printed(lake):
    assert "secret" not in repr(read(lake, keys='{"id": "secret"}'))
    assert "secret" not in repr(read(lake, where="id = 'secret'"))
