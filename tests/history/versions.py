"""The history of a table as it was at an earlier quiet point, by the times that its versions tell."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def versions_at(history: pa.Table, moment: int) -> pa.Table:
    """Those that stood at `moment`, in microseconds since 1970 UTC: the query that `silver.md` prints."""
    since, until = (history[name].cast(pa.int64()) for name in ("_cdc_from_ts", "_cdc_to_ts"))
    stands = pc.or_(pc.is_null(until), pc.greater(pc.fill_null(until, 0), moment))
    return history.filter(pc.and_(pc.less_equal(since, moment), stands))
