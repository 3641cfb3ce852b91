"""Tasks that are tried again: the rows arrive once, and what the failed try wrote belongs to nobody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import ORDERS, know, notes, order  # type: ignore[import-not-found]
from pyspark.sql.classic.dataframe import DataFrame

from cdc_lakehouse.maintenance.vacuum import vacuum


@pytest.fixture
def chain(engine, tmp_path: Path) -> Chain:
    found = Chain(engine, root=(tmp_path / "lake").as_uri())
    know(found)
    return found


def test_a_task_that_fails_behind_its_file_adds_its_rows_once(chain, tmp_path, monkeypatch):
    uri, failed = chain.lake.bronze("orders"), tmp_path / "failed"
    fail_once(monkeypatch, failed)

    result = chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])

    folder = Path(urlsplit(uri).path)
    assert failed.exists()
    assert result.counts["appended"] == 2
    assert notes(chain.bronze(ORDERS)) == {0: "one", 1: "two"}
    assert (len(list(folder.glob("*.parquet"))), len(DeltaTable(uri).file_uris())) == (2, 1)

    vacuum(chain.engine.isolated(), uri, retention=timedelta(0))

    assert [path.name for path in folder.glob("*.parquet")] == [
        Path(found).name for found in DeltaTable(uri).file_uris()
    ]
    assert notes(chain.bronze(ORDERS)) == {0: "one", 1: "two"}


def fail_once(monkeypatch: pytest.MonkeyPatch, marker: Path) -> None:
    """The first task that hands back its lines fails then: its file is whole and nobody will name it."""
    real, path = DataFrame.mapInArrow, str(marker)

    def fail(lines: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(lines)
        if found and not Path(path).exists():
            Path(path).touch()
            raise RuntimeError("the executor is lost")
        yield from found

    def map_twice(self: DataFrame, function: Any, schema: Any, *args: Any, **options: Any) -> DataFrame:
        lines = real(self, function, schema, *args, **options)
        return real(lines, fail, lines.schema)

    monkeypatch.setattr(DataFrame, "mapInArrow", map_twice)
