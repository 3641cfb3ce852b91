"""What unit tests share: both ways of reading records, a pipeline file of one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_lakehouse.config.loader import load_pipeline
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.debezium import decode

_SINGLY, _AS_COLUMNS = 10**6, 1
_OF_ORDERS = """\
version: 1
name: shop
owner: data-platform
schedule: "*/15 * * * *"
start_date: 2026-01-01
tables:
  - name: orders
    topics: [shop.public.orders]
"""


@pytest.fixture(params=[_SINGLY, _AS_COLUMNS], ids=["singly", "as columns"])
def both_ways(request, monkeypatch) -> None:
    """A law of the decoder holds however records are read: smaller groups of them are read one by one."""
    monkeypatch.setattr(decode, "SMALL_GROUP", request.param)


@pytest.fixture
def load_orders(tmp_path: Path) -> Callable[[str], Table]:
    """The table `orders` of a pipeline file that says this line of it, too."""

    def load(line: str) -> Table:
        path = tmp_path / "shop.yaml"
        path.write_text(f"{_OF_ORDERS}    {line}\n", encoding="utf-8")
        return load_pipeline(path).table("orders")

    return load
