"""A converter of columns beside the converter of single values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault


def singly(convert: Any, raw: list[Any]) -> tuple[list[Any], list[bool]]:
    final, refused = [], []
    for each in raw:
        try:
            final.append(None if each is None else convert(each))
            refused.append(False)
        except RecordFault:
            final.append(None)
            refused.append(True)
    return final, refused


def assert_twins(convert: Any, twin: Any, raw: list[Any], types: tuple[pa.DataType, pa.DataType]) -> None:
    """Whole, and as a slice of a longer column."""
    final, refused = singly(convert, raw)
    for column in (pa.array(raw, types[0]), pa.array([None, *raw, None], types[0]).slice(1, len(raw))):
        found, wrong = twin(column)
        found.validate(full=True)
        assert found.type == types[1]
        assert (refused if wrong is None else wrong.tolist()) == refused
        assert wrong is not None or not any(refused)
        kept = [each for each, bad in zip(found.to_pylist(), refused, strict=True) if not bad]
        expected = pa.array([each for each, bad in zip(final, refused, strict=True) if not bad], types[1])
        assert kept == expected.to_pylist()
