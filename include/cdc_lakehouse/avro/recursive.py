"""Columns of what columns cannot hold: values of recursive types, read row by row into JSON text."""

from __future__ import annotations

from struct import error

import pyarrow as pa

from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.json_text import json_reader
from cdc_lakehouse.avro.spread import Spread, spread_out
from cdc_lakehouse.avro.wire import Wire


class RecursiveColumn:
    """Everything around it stays columnar; see `json_text` for the text."""

    type = pa.string()

    def __init__(self, wire: Wire) -> None:
        self._read = json_reader(wire)

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        return spread_out(pa.array(self._texts(cursors), pa.string()), spread)

    def skip(self, cursors: Cursors) -> None:
        self._texts(cursors)

    def _texts(self, cursors: Cursors) -> list[str | None]:
        data, limits = cursors.memory.bytes.data, cursors.limit.tolist()
        texts: list[str | None] = []
        places = cursors.at.tolist()
        for row, (at, limit) in enumerate(zip(places, limits, strict=True)):
            try:
                text, places[row] = self._read(data[: limit - 1], at)
            except (RecordFault, IndexError, error):
                text, places[row] = None, limit
            texts.append(text)
        cursors.at[:] = places
        return texts
