"""Which records could not be decoded, by table and code: how many, where the first ones are, since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.quarantine import Case, cases, name_of_cases

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Cases:
    """Of one code in one table."""

    pipeline: str
    table: str
    code: str
    count: int
    first: tuple[str, ...]
    """Coordinates of a few, in Kafka's order."""
    detail: str
    """What is wrong with the first one."""
    schema_ids: tuple[int, ...]
    """That their values name."""
    since: datetime
    """When the first one came into bronze."""
    decision: str
    """`<table>=<code>:<count>records@<digest>`: these and no others are closed, or reopened, by it."""
    closed: bool = False
    """Nobody waits for them any more."""


def quarantine(root: str, pipelines: Iterable[Pipeline]) -> list[Cases]:
    """The most frequent codes first within a table, closed ones last; tables in the order of the files."""
    found: list[Cases] = []
    for pipeline in pipelines:
        lake = Lake(root=root, pipeline=pipeline.name)
        for table in pipeline.tables:
            for closed in (False, True):
                rows = cases(lake.bronze(table.name), closed=closed)
                if rows is not None:
                    by_code = _by_code(pipeline.name, table.name, rows, closed=closed)
                    found += sorted(by_code, key=lambda each: (-each.count, each.code))
    return found


def _by_code(pipeline: str, table: str, rows: pa.Table, *, closed: bool) -> Iterator[Cases]:
    ordered = rows.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")]).to_pylist()
    codes = {row["decode_error"]["code"]: None for row in ordered}
    for code in codes:
        own = [row for row in ordered if row["decode_error"]["code"] == code]
        yield Cases(
            pipeline=pipeline,
            table=table,
            code=code,
            count=len(own),
            first=tuple(f"{row['topic']}/{row['partition']}@{row['offset']}" for row in own[:_SHOWN]),
            detail=own[0]["decode_error"]["detail"] or "",
            schema_ids=tuple(sorted({row["value_schema_id"] for row in own} - {None})),
            since=min(row["ingested_at"] for row in own),
            decision=f"{table}={name_of_cases(code, map(_case_of, own))}",
            closed=closed,
        )


def _case_of(row: Mapping[str, Any]) -> Case:
    place = row["topic"], row["partition"], row["offset"]
    return Case(*place, code=row["decode_error"]["code"], topic_id=row["topic_id"])
