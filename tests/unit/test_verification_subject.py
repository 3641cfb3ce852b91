"""By which columns rows of silver and of the source are paired."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.verification.subject import NotComparedError, key_of

KEYED, KEYLESS = pa.schema([("key", pa.struct([("id", pa.int64())]))]), pa.schema([("op", pa.string())])


def table(**options: Any) -> Table:
    return Table.model_validate({"name": "orders", "topics": ["t"], **options})


def test_rows_are_paired_by_the_message_key_or_by_the_key_that_the_table_names():
    renamed = table(key=["number"], columns={"rename": {"code": "number"}})

    assert key_of(KEYED, table()) == ("id",)
    assert key_of(KEYED, table(key=["code", "id"])) == ("code", "id")
    assert key_of(KEYLESS, renamed) == ("code",)


def test_without_any_key_nothing_is_compared():
    with pytest.raises(NotComparedError, match="it has no key"):
        key_of(KEYLESS, table())
