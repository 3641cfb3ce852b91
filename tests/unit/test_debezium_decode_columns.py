"""The laws of `test_debezium_decode` once more, with every record decoded as columns."""

from __future__ import annotations

import pytest
from test_debezium_decode import *  # type: ignore[import-not-found]  # noqa: F403

from cdc_lakehouse.debezium import decode as decoding


@pytest.fixture(autouse=True)
def _every_group_as_columns(monkeypatch):
    monkeypatch.setattr(decoding, "SMALL_GROUP", 1)
