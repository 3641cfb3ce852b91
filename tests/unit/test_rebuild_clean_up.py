"""Second tables of rebuilds are deleted; a kill in between leaves none of which a part is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.folders import delete_table, has_first_commit
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.rebuild import Rebuild
from cdc_lakehouse.repair.records import RepairRecord
from cdc_lakehouse.repair.shadows import delete_all_shadows

ATTEMPT = "20261120T080000Z-00000001"
PLAN = TablePlan(
    operation=Job.REBUILD, pipeline="shop", table="orders", options={}, basis={"shadow": ATTEMPT}
)
RECORD = RepairRecord(
    plan=PLAN, planned={}, done_at="2026-11-20T08:00:00+00:00", facts={"after": {"silver": 1}}
)


@contextmanager
def killed_before_a_folder_goes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End what is inside where it would delete a folder, as a kill does."""

    def die(*_arguments: Any) -> None:
        raise StorageUnavailableError(root="file:///lake", reason="killed")

    with monkeypatch.context() as patch:
        patch.setattr(files, "delete_child", die)
        with pytest.raises(StorageUnavailableError):
            yield


def test_a_second_table_whose_deletion_was_killed_is_deleted_and_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    shadow, application = replace(lake, shadow=ATTEMPT), SimpleNamespace(lake=lake)
    for number in range(2):
        write_deltalake(shadow.silver("orders"), pa.table({"id": [number]}), mode="append")
    write_deltalake(shadow.history("orders"), pa.table({"id": [0]}))
    with killed_before_a_folder_goes(monkeypatch):
        delete_table(shadow.silver("orders"))
    outcome = Rebuild().verify(application, Table(name="orders", topics=("orders",)), RECORD)  # type: ignore[arg-type]

    assert outcome.summary == "nothing is left to compare with"
    assert list(Path(urlsplit(lake.shadows("orders")).path).iterdir()) == []


def test_second_tables_whose_deletion_was_killed_are_no_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    shadow = replace(lake, shadow=ATTEMPT)
    write_deltalake(shadow.silver("orders"), pa.table({"id": [0]}))
    with killed_before_a_folder_goes(monkeypatch):
        delete_all_shadows(lake, "orders")
    is_readable_between = has_first_commit(shadow.silver("orders"))
    delete_all_shadows(lake, "orders")

    assert not is_readable_between
    assert list(Path(urlsplit(lake.shadows("orders")).path).iterdir()) == []
