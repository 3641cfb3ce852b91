"""Which states a crash leaves are the same to the next run, and which are not."""

from __future__ import annotations

import pytest

from cdc_lakehouse.lake.names import SCHEMA_CHANGES
from crash.broker import PIPELINE  # type: ignore[import-not-found]
from crash.mutations import Storage, mutations_of, states_of  # type: ignore[import-not-found]
from crash.states import key  # type: ignore[import-not-found]

SILVER = f"silver/{PIPELINE}"
COMMIT = b'{"add": {"path": "rows.parquet"}}'
LAKE = Storage().with_files({f"{SILVER}/orders/_delta_log/{0:020d}.json": COMMIT})


def differs(path: str, *, table: str = "orders", data: bytes = COMMIT) -> bool:
    """Whether a run of the table can tell that the file is there."""
    return bool(key(LAKE, table) != key(LAKE.with_files({path: data}), table))


@pytest.mark.parametrize("beside", ["orders__tombstones", "orders__history", SCHEMA_CHANGES])
def test_what_stands_beside_silver_is_read_by_a_run_of_its_table(beside):
    log = f"{SILVER}/{beside}/_delta_log"

    assert differs(f"{log}/{0:020d}.json")
    assert differs(f"{SILVER}/{beside}/rows.parquet"), "nothing is committed: it is found as it lies there"


@pytest.mark.parametrize("other", ["customers", "customers__tombstones", "orders2"])
def test_what_is_of_another_table_is_not(other):
    assert not differs(f"{SILVER}/{other}/_delta_log/{0:020d}.json")


def test_the_log_of_schema_changes_is_read_by_every_table():
    path = f"{SILVER}/{SCHEMA_CHANGES}/_delta_log/{0:020d}.json"

    assert differs(path, table="orders")
    assert differs(path, table="customers")


@pytest.mark.parametrize(
    "path",
    [
        f"_ops/{PIPELINE}/repairs/{{table}}/5f1c09ae77d2.json",
        f"_ops/{PIPELINE}/shadows/{{table}}/attempt/{{table}}/_delta_log/{0:020d}.json",
        f"_archive/{PIPELINE}/{{table}}/5f1c09ae77d2/silver/_delta_log/{0:020d}.json",
    ],
)
def test_what_the_repairs_of_a_table_keep_is_read_by_its_next_one(path):
    assert differs(path.format(table="orders"))
    assert not differs(path.format(table="customers"))


def test_a_record_of_a_repair_that_was_not_renamed_yet_is_not_read():
    assert not differs(f"_ops/{PIPELINE}/repairs/orders/.0123456789abcdef.part")


def test_changes_that_make_a_storage_lead_to_it():
    storage = Storage({"a/b": b"12", "a/empty": b""}, frozenset({"a", "a/folder"}))

    assert states_of(mutations_of(storage))[-1] == storage
