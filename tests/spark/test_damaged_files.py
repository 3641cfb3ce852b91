"""A byte that rots in a file of bronze stops the merge: no row is missing, none has another value."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import ORDERS, acknowledging, know, notes, order, planned  # type: ignore[import-not-found]

from cdc_lakehouse.application import session as application_session
from cdc_lakehouse.application.failures import translated
from cdc_lakehouse.errors import BronzeRowsMissingError, FileDamagedError
from cdc_lakehouse.lake.rows import read_rows

FIRST, LATER = [order(0, 1, note="one")], [order(1, 2, note="two"), order(2, 3, note="three")]


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("damaged").as_uri())
    know(chain)
    chain.ingest(ORDERS, FIRST)
    chain.merge(ORDERS)
    chain.ingest(ORDERS, LATER)
    return chain


@pytest.fixture
def rotten(template: Chain, tmp_path: Path) -> Chain:
    """The offset of a row that silver does not have yet is another number now."""
    chain = template.copied_to(tmp_path)
    folder = Path(urlsplit(chain.lake.bronze("orders")).path)
    files = [path for path in folder.glob("*.parquet") if pq.read_metadata(path).num_rows == len(LATER)]
    _rot_offset(*files)
    return chain


def _rot_offset(path: Path) -> None:
    """Flip the one bit by which a row leaves the ranges of the ledger, and nothing else changes."""
    sound, column = path.read_bytes(), _column(path, "offset")
    for place in range(column.data_page_offset, column.data_page_offset + column.total_compressed_size):
        rotten = sound[:place] + bytes([sound[place] ^ 0x40]) + sound[place + 1 :]
        if _offsets(rotten) in ([65, 2], [1, 66]):
            path.write_bytes(rotten)
            return
    raise AssertionError("no byte is an offset")


def _column(path: Path, name: str) -> pq.ColumnChunkMetaData:
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return next(chunk for chunk in chunks if chunk.path_in_schema == name)


def _offsets(content: bytes) -> list[int] | None:
    try:
        return pq.read_table(pa.BufferReader(content), columns=["offset"])["offset"].to_pylist()  # type: ignore[no-any-return]
    except (OSError, pa.ArrowException):
        return None


def failure(chain: Chain) -> BaseException:
    """As the job tells it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        chain.merge(ORDERS)
    return translated(caught.value, table="orders", attempt="a", bootstrap="", root=chain.root)


@pytest.fixture
def without_sums(monkeypatch) -> None:
    """As in a lake of releases that wrote none."""
    settings = {name: each for name, each in application_session._SETTINGS.items() if "checksum" not in name}
    monkeypatch.setattr(application_session, "_SETTINGS", settings)


def test_a_rotten_page_of_bronze_stops_the_merge_and_names_its_file(rotten):
    error = failure(rotten)

    assert isinstance(error, FileDamagedError)
    assert "/bronze/cases/orders/" in error.what
    assert notes(rotten.silver(ORDERS)) == {1: "one"}


@pytest.mark.usefixtures("without_sums")
def test_a_row_that_bronze_does_not_give_any_more_stops_the_merge(rotten):
    error = failure(rotten)

    assert isinstance(error, BronzeRowsMissingError)
    assert (error.read, error.expected, error.ranges) == (1, 2, "cases.orders/0 [1, 3)")
    assert notes(rotten.silver(ORDERS)) == {1: "one"}


def test_the_version_before_the_file_brings_its_records_back_from_kafka(rotten):
    rotten.sql("RESTORE TABLE {t} TO VERSION AS OF 1", rotten.lake.bronze("orders"))
    plan = planned(rotten, acknowledging(rotten), held=(0, 3))
    rotten.ingest(ORDERS, LATER, plan=plan)
    rotten.merge(ORDERS)

    assert notes(rotten.silver(ORDERS)) == {1: "one", 2: "two", 3: "three"}


def test_a_rotten_page_of_silver_is_no_value_for_whoever_reads_it_without_spark(template, tmp_path):
    chain = template.copied_to(tmp_path)
    chain.merge(ORDERS)
    folder = Path(urlsplit(chain.lake.silver("orders")).path)
    for path in folder.glob("*.parquet"):
        chunk, content = _column(path, "note"), bytearray(path.read_bytes())
        content[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
        path.write_bytes(bytes(content))

    with pytest.raises(FileDamagedError):
        read_rows(chain.lake.silver("orders"))
