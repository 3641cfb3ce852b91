"""What tests of the decoder share: each law holds however its records are read."""

from __future__ import annotations

import pytest

from cdc_lakehouse.debezium import decode

_SINGLY, _AS_COLUMNS = 10**6, 1


@pytest.fixture(params=[_SINGLY, _AS_COLUMNS], ids=["singly", "as columns"])
def both_ways(request, monkeypatch) -> None:
    """Groups of records that are smaller are read one by one."""
    monkeypatch.setattr(decode, "SMALL_GROUP", request.param)
