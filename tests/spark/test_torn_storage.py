"""What a loss of power leaves of a table, made by hand on real tables: healed, or red with a way out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from orders import EMPTY, NEW, ORDERS, know, notes, order, planned  # type: ignore[import-not-found]
from shapes import SHAPED, record, rows, shapes  # type: ignore[import-not-found]
from shapes import know as know_shapes

from cdc_lakehouse.bronze.decided import NOTHING, Decided
from cdc_lakehouse.bronze.planning import standing
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ExitCode, Job, TableResult, TableStatus
from cdc_lakehouse.errors import DataFilesGoneError, LogTornError
from cdc_lakehouse.lake.damage import TORN
from cdc_lakehouse.lake.newest_ledger import newest_ledger
from cdc_lakehouse.lake.state import foreign_name, look_into
from cdc_lakehouse.silver import table_merge
from cdc_lakehouse.silver.job import merge_tables

RECORDS = [order(0, 0, note="zero"), order(1, 1, note="one"), order(2, 0, op="u", note="new")]
BRONZE = {0: "zero", 1: "one", 2: "new"}
SILVER = {0: "new", 1: "one"}


def newest_commit(uri: str) -> Path:
    return max((Path(urlsplit(uri).path) / "_delta_log").glob("*.json"))


def newest_data(uri: str) -> Path:
    """The file that the newest commit added."""
    _, _, rest = newest_commit(uri).read_text().rpartition('"add":{"path":"')
    return Path(urlsplit(uri).path) / rest.partition('"')[0]


def empty(uri: str) -> None:
    newest_commit(uri).write_bytes(b"")


def half(uri: str) -> None:
    content = newest_commit(uri).read_bytes()
    newest_commit(uri).write_bytes(content[: len(content) // 2])


def zeros(uri: str) -> None:
    newest_commit(uri).write_bytes(bytes(newest_commit(uri).stat().st_size))


def lost(uri: str) -> None:
    """Its checksum, which was written behind it, is there."""
    newest_commit(uri).unlink()


TEARS = pytest.mark.parametrize("tear", [empty, half, zeros, lost])


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("torn").as_uri())
    know(chain)
    chain.ingest(ORDERS, RECORDS[:2])
    chain.merge(ORDERS)
    chain.ingest(ORDERS, RECORDS[2:])
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def lake(template: Chain, tmp_path: Path) -> Chain:
    """Bronze and silver have two steps each; nothing is left to do."""
    return template.copied_to(tmp_path)


def merged(chain: Chain, table: Table = ORDERS) -> TableResult:
    (result,) = merge_tables(chain.application(table, job=Job.SILVER_MERGE))
    return result


@TEARS
def test_bronze_goes_back_behind_a_torn_commit_and_reads_its_records_again(lake, tear: Callable[[str], None]):
    uri = lake.lake.bronze("orders")
    tear(uri)

    assert newest_ledger(uri, table="orders") is None
    with pytest.raises(LogTornError):
        standing(uri, EMPTY, decided=NOTHING, session=None)
    plan = planned(lake, held=(0, 3))
    result = lake.ingest(ORDERS, RECORDS[2:], plan=plan)

    assert (plan.backlog, result.status) == (1, TableStatus.ADVANCED)
    assert notes(lake.bronze(ORDERS)) == BRONZE
    assert list((Path(urlsplit(uri).path) / TORN).iterdir()) != []
    assert merged(lake).error is None
    assert notes(lake.silver(ORDERS)) == SILVER


@TEARS
def test_silver_goes_back_behind_a_torn_commit_and_is_merged_again(lake, tear: Callable[[str], None]):
    tear(lake.lake.silver("orders"))

    result = merged(lake)

    assert (result.error, result.status) == (None, TableStatus.ADVANCED)
    assert notes(lake.silver(ORDERS)) == SILVER


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("harm", [Path.unlink, cut], ids=["gone", "cut"])
def test_no_look_at_bronze_is_idle_and_no_ingest_green_without_a_data_file(lake, harm):
    uri = lake.lake.bronze("orders")
    harm(newest_data(uri))

    assert newest_ledger(uri, table="orders") is None
    with pytest.raises(DataFilesGoneError) as caught:
        planned(lake, held=(0, 4))

    assert (caught.value.count, caught.value.whole) == (1, "all files of version 1 are there")


def test_a_bronze_that_is_restored_to_the_version_that_is_named_reads_on_from_there(lake):
    uri = lake.lake.bronze("orders")
    newest_data(uri).unlink()
    lake.sql("RESTORE TABLE {t} TO VERSION AS OF 1", uri)

    state = look_into(uri, table="orders")
    assert state is not None
    decided = Decided(acknowledge_foreign=frozenset({foreign_name(state)}))
    plan = planned(lake, decided, held=(0, 3))
    lake.ingest(ORDERS, RECORDS[2:], plan=plan)

    assert notes(lake.bronze(ORDERS)) == BRONZE
    assert merged(lake).error is None
    assert notes(lake.silver(ORDERS)) == SILVER


@pytest.mark.parametrize("layer", ["bronze", "silver"])
def test_no_merge_is_green_without_a_data_file(lake, layer):
    newest_data(getattr(lake.lake, layer)("orders")).unlink()

    result = merged(lake)

    assert result.error is not None
    assert (result.error.code, result.error.exit_code) == ("DATA_FILES_GONE", ExitCode.DATA)


def test_a_silver_whose_folder_is_deleted_is_computed_anew(lake):
    folder = Path(urlsplit(lake.lake.silver("orders")).path)
    newest_data(folder.as_uri()).unlink()
    shutil.rmtree(folder)

    assert merged(lake).error is None
    assert notes(lake.silver(ORDERS)) == SILVER


def test_torn_tables_beside_silver_say_again_what_they_said(engine, tmp_path):
    """A step of each is torn that silver has committed: a delete, its version, the line of a new column."""
    table, chain = table_of("orders", history=True), Chain(engine, root=(tmp_path / "lake").as_uri())
    know(chain)
    know(chain, NEW)
    chain.ingest(table, RECORDS[:2])
    chain.merge(table)
    update = {"op": "u", "note": "new", "priority": 1, "writer": NEW}
    chain.ingest(table, [order(2, 0, **update), order(3, 0, op="d", writer=NEW)])
    chain.merge(table)
    sound, torn = chain.copied_to(tmp_path / "sound"), chain.copied_to(tmp_path / "torn")
    for uri in (torn.lake.history("orders"), torn.lake.tombstones("orders"), torn.lake.schema_changes):
        half(uri)

    for each in (sound, torn):  # the update is sent again behind its delete, and the new column is dropped
        each.ingest(table, [order(2, 0, at=4, **update), order(5, 1, op="u", note="newest")])
        assert merged(each, table).error is None

    assert notes(torn.silver(table)) == notes(sound.silver(table)) == {1: "newest"}
    assert sorted(map(str, torn.history(table))) == sorted(map(str, sound.history(table)))
    assert [row["id"] for row in torn.rows(torn.lake.tombstones("orders"), "id")] == [0]
    assert {row["change"] for row in torn.rows(torn.lake.schema_changes, "change")} == {"dropped"}
    assert merged(torn, table).status is TableStatus.IDLE


def test_a_default_reaches_all_rows_though_the_line_of_its_column_is_torn(engine, tmp_path):
    """The column was durable when the power failed, and its line was not; silver's step was still to come."""
    chain = Chain(engine, root=tmp_path.as_uri())
    old, new = shapes({"a": "int"}, {"a": "int", "b": "int=7!"})
    know_shapes(chain, old)
    chain.ingest(SHAPED, [record(old, 0, 1, a=1), record(old, 1, 2, a=2)])
    chain.merge(SHAPED)
    know_shapes(chain, new)
    chain.ingest(SHAPED, [record(new, 2, 1, op="u", a=1, b=9)])
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(table_merge, "apply_changes", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            chain.merge(SHAPED)
    half(chain.lake.schema_changes)

    assert merged(chain, SHAPED).error is None
    assert rows(chain) == {1: {"a": 1, "b": 9}, 2: {"a": 2, "b": 7}}
