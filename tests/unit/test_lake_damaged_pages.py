"""A data file whose bytes were changed is an error with its name, whoever reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_logs import foreign, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.errors import FileDamagedError
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.rows import batches_of, read_rows
from cdc_lakehouse.lake.snapshot import newest_snapshot

ROWS = pa.table({"offset": [1, 2], "decode_error": [None, {"code": "truncated", "detail": "here"}]})


def change_page(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b"truncated", b"trunxated", 1))


def change_footer(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"0")


def read_batches(uri: str) -> None:
    snapshot = newest_snapshot(uri)
    assert snapshot is not None
    list(batches_of(snapshot, ["decode_error"], most=10))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    folder = tmp_path / "orders"
    folder.mkdir()
    file = folder / "a.parquet"
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pq.write_table(ROWS, file, write_statistics=False, **options)
    added = {
        "path": file.name,
        "partitionValues": {},
        "size": file.stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
    }
    write_log(folder.as_uri(), [*foreign("WRITE"), {"add": added}])
    return folder.as_uri()


@pytest.mark.parametrize("change", [change_page, change_footer])
@pytest.mark.parametrize("read", [read_rows, read_batches, open_cases])
def test_a_file_whose_bytes_were_changed_is_named(
    uri: str, change: Callable[[Path], None], read: Callable[[str], object]
) -> None:
    read(uri)
    change(Path(uri.removeprefix("file://"), "a.parquet"))

    with pytest.raises(FileDamagedError, match=r"orders/a\.parquet"):
        read(uri)
