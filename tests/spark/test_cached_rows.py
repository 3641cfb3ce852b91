"""Rows that a merge keeps in memory go with it, also where it fails: a session serves many tables."""

from __future__ import annotations

from typing import Any

import pytest
from chain import Chain  # type: ignore[import-not-found]
from people import change, merged, people  # type: ignore[import-not-found]

from cdc_lakehouse.lake.row_replacement import RowReplacement
from cdc_lakehouse.silver.history import upkeep

NO_NUMBER = "cast(region as int) > 0"


def failed(*_: Any, **__: Any) -> None:
    raise ArithmeticError("made to fail")


def are_cached(chain: Chain) -> bool:
    return not chain.session._jsparkSession.sharedState().cacheManager().isEmpty()


@pytest.mark.parametrize(
    ("room", "name", "options"),
    [
        (RowReplacement, "add", {}),
        (upkeep, "merge_history", {"history": True}),
        (upkeep, "follow_silver", {"filter": NO_NUMBER}),
    ],
    ids=["by place", "history", "filter"],
)
def test_a_merge_that_fails_keeps_no_rows(room, name, options, chain, monkeypatch):
    chain.session.catalog.clearCache()
    monkeypatch.setattr(room, name, failed)

    with pytest.raises(Exception, match="CAST_INVALID_INPUT" if "filter" in options else "made to fail"):
        merged(chain, people(**options), [change(0, 1, "EU", op="c", big="one")])

    assert not are_cached(chain)
