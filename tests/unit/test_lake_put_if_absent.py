"""A disk is asked for hard links; what a bucket is asked stands in `tests/s3`."""

from __future__ import annotations

import errno
import os

import pytest

from artifacts import spark_files
from cdc_lakehouse.application.log_stores import LOG_STORES
from cdc_lakehouse.config.storage_settings import StorageSettings
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors import StorageUnavailableError, UnsafeStoreError
from cdc_lakehouse.lake.put_if_absent import require_put_if_absent


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    require_put_if_absent.cache_clear()


def test_a_disk_with_hard_links_is_left_clean(tmp_path):
    require_put_if_absent(StorageSettings((tmp_path / "lake").as_uri()))

    assert list((tmp_path / "lake" / "_ops").iterdir()) == []


def test_a_disk_without_hard_links_is_refused(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    with pytest.raises(UnsafeStoreError) as caught:
        require_put_if_absent(StorageSettings(tmp_path.as_uri()))

    assert caught.value.exit_code is ExitCode.CONFIG
    assert caught.value.reason == "it makes no hard links (Operation not permitted)"
    assert list((tmp_path / "_ops").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_tried_again_later(tmp_path):
    (tmp_path / "lake").touch()

    with pytest.raises(StorageUnavailableError):
        require_put_if_absent(StorageSettings((tmp_path / "lake").as_uri()))


def test_a_store_is_asked_once(tmp_path, monkeypatch):
    settings = StorageSettings(tmp_path.as_uri())
    require_put_if_absent(settings)
    monkeypatch.delattr(os, "link")

    require_put_if_absent(settings)


def test_the_local_stack_starts_spark_with_the_log_stores_that_jobs_demand():
    assert spark_files.LOG_STORES == LOG_STORES
