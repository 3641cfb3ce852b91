"""`columns`: silver has the chosen columns, renamed and masked; bronze has all as they came."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chain import Chain  # type: ignore[import-not-found]
from people import change, merged, people, told  # type: ignore[import-not-found]

from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE, TableStatus
from cdc_lakehouse.errors import InvalidShapeError, MissingConnectionError, ShapeChangedError
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.silver.columns.shape import plan_shape
from cdc_lakehouse.silver.columns.shaping import shaped

SECRET = "a secret that nobody may ever read"
OTHER = "another secret that nobody may read"
HASHED = people(columns={"mask": {"region": "hash", "big": "hash"}})
HASHED_KEY = people(columns={"mask": {"id": "hash"}, "rename": {"id": "person"}})
MOVES = (
    [change(0, 1, "EU", op="c", big="long")],
    [change(1, 1, op="d"), change(1, 11, "EU", op="c", order=2)],
    [change(2, 11, "US", amount=2)],
)


@pytest.fixture(autouse=True)
def secret(monkeypatch) -> None:
    know_secret(monkeypatch, SECRET)


def know_secret(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    connection = {"extra": {"root": "file:///lake", "mask_secret": text}}
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps(connection))


def keyed(text: str) -> str:
    return hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()


def of_silver(chain: Chain) -> list[str]:
    schema = chain.session.read.format("delta").load(chain.lake.silver("people")).schema
    return [f"{field.name} {field.dataType.simpleString()}" for field in schema if field.name[0] != "_"]


def test_columns_are_left_out_renamed_and_emptied(chain):
    table = people(columns={"exclude": ["big"], "rename": {"region": "area"}, "mask": {"amount": None}})
    merged(chain, table, [change(0, 1, "EU", op="c", big="long")], [change(1, 1, "US", amount=7)])

    assert of_silver(chain) == ["id bigint", "area string", "amount int"]
    assert told(chain, "id", "area", "amount", "_cdc_incomplete") == [(1, "US", None, None)]
    assert chain.bronze(table)[0]["after"] == {"id": 1, "region": "EU", "amount": 1, "big": "long"}


def test_a_hash_stands_for_a_value_and_null_for_null(chain):
    merged(chain, HASHED, [change(0, 1, "EU", op="c", big=None), change(1, 2, None, op="c", big="long")])

    assert told(chain, "id", "region", "big") == [(1, keyed("EU"), None), (2, None, keyed("long"))]


@pytest.mark.parametrize("at_once", [False, True], ids=["stepwise", "at once"])
def test_an_untold_value_of_a_masked_and_renamed_column_is_carried_along(at_once, chain):
    table = people(columns={"rename": {"big": "large"}, "mask": {"big": "hash"}})
    merged(chain, table, *([[record for batch in MOVES for record in batch]] if at_once else MOVES))

    assert told(chain, "id", "region", "amount", "large", "_cdc_incomplete") == [
        (11, "US", 2, keyed("long"), None)
    ]


def test_a_hashed_and_renamed_key_is_the_identity_of_its_row(chain):
    records = [change(0, 1, "EU", op="c", big="long")], [change(1, 1, "US")], [change(2, 2, "EU", op="c")]
    merged(chain, HASHED_KEY, *records, [change(3, 2, op="d")])

    assert told(chain, "person", "region", "big") == [(keyed("1"), "US", "long")]


def test_an_older_event_brings_no_row_with_a_hashed_key_back(chain):
    gone = [change(0, 1, "EU", op="c", big="long"), change(5, 1, op="d")]
    merged(chain, HASHED_KEY, gone, [change(3, 1, "US", partition=1)])

    assert told(chain, "person") == []


def test_equal_values_of_wider_types_have_one_hash(spark):
    values = spark.sql(
        "select struct(5 as i, 5L as l, 5.00bd as d, 5.5f as f, 5.5d as g, date'2026-01-02' as t,"
        " timestamp_ntz'2026-01-02 00:00:00' as u, '5' as s, 10bd as n) as after,"
        " cast(null as array<string>) as unavailable"
    )
    columns = columns_in(values.schema)
    choice = people(columns={"mask": dict.fromkeys("ildfgtusn", "hash")}).columns
    shape = plan_shape(columns, choice, table="t")
    row = shaped(values, shape, secret=MaskSecret(SECRET.encode())).collect()[0]["after"]

    assert (row["i"], row["l"], row["d"], row["s"]) == (keyed("5"),) * 4
    assert (row["f"], row["t"], row["n"]) == (row["g"], row["u"], keyed("10"))


def test_neither_a_plan_nor_a_file_of_the_lake_holds_the_secret(chain, capsys):
    merged(chain, HASHED, [change(0, 1, "EU", op="c", big="long")], [change(1, 1, "US")])
    rows = chain.session.read.format("delta").load(chain.lake.bronze("people"))
    shape = plan_shape(columns_in(rows.schema), HASHED.columns, table="people")
    shaped(rows, shape, secret=MaskSecret(SECRET.encode())).select("after").explain("extended")

    told_by_spark = capsys.readouterr().out
    files = [path.read_bytes() for path in Path(urlsplit(chain.root).path).rglob("*") if path.is_file()]
    assert "keyed_hash" in told_by_spark
    assert SECRET not in told_by_spark
    assert [each for each in files if SECRET.encode() in each] == []


def test_a_hash_without_a_secret_is_refused_by_the_connections_name(chain, monkeypatch):
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps({"extra": {"root": "file:///lake"}}))

    with pytest.raises(MissingConnectionError, match="its extra has no `mask_secret`") as caught:
        merged(chain, HASHED, [change(0, 1, "EU", op="c", big="long")])

    assert caught.value.connection == ENV_CONNECTION_STORAGE


def test_a_name_that_bronze_lacks_stops_silver_before_anything_is_written(chain):
    with pytest.raises(InvalidShapeError, match="did you mean region"):
        merged(chain, people(columns={"mask": {"regoin": "hash"}}), [change(0, 1, "EU", op="c")])

    assert not Path(urlsplit(chain.lake.silver("people")).path).exists()


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({"columns": {"mask": {"region": "hash"}}}, "region"),
        ({"columns": {"exclude": ["amount"], "rename": {"big": "large"}}}, "amount, big"),
        ({"filter": "amount > 0"}, "`filter`"),
    ],
)
def test_other_settings_are_refused_though_nothing_else_is_new(options, changed, chain):
    merged(chain, people(), [change(0, 1, "EU", op="c", big="long")])

    with pytest.raises(ShapeChangedError) as caught:
        chain.merge(people(**options))

    assert caught.value.changed == changed


def test_another_secret_is_refused(chain, monkeypatch):
    merged(chain, HASHED, [change(0, 1, "EU", op="c", big="long")])
    know_secret(monkeypatch, OTHER)
    chain.ingest(HASHED, [change(1, 1, "US")])

    with pytest.raises(ShapeChangedError) as caught:
        chain.merge(HASHED)

    assert caught.value.changed == "the secret of the masks"


def test_silver_is_made_anew_by_other_settings_once_its_folder_is_gone(chain):
    merged(chain, people(filter="region = 'EU'"), [change(0, 1, "US", op="c", big="long")])
    table = people(columns={"include": ["id", "big"]})
    chain.forget_silver(table)
    chain.merge(table)

    assert told(chain, "id", "big") == [(1, "long")]


def test_another_way_to_say_the_same_is_taken_and_then_level(chain):
    merged(chain, people(columns={"exclude": ["big"]}), [change(0, 1, "EU", op="c", big="long")])
    same = people(columns={"include": ["id", "region", "amount"]})

    assert [chain.merge(same).status for _ in range(2)] == [TableStatus.ADVANCED, TableStatus.IDLE]
