"""Results as the jobs really wrote them: one file per job, for tests of whoever reads results.

A test that runs the job compares its result with the file, or writes the file anew when `RECORD_RESULTS` is
set. What differs from run to run
(durations, rates, the attempt, places in the log of a source) is fixed in the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdc_lakehouse.contract import Job, JobResult, TableResult

ATTEMPT = "20260101T000000Z-00000001"
_FOLDER = Path(__file__).parent
_RATES = frozenset({"per_second", "decoded_per_second", "bytes", "bytes_packed", "bytes_reclaimed"})


def recorded_text(job: Job) -> str:
    return _file(job).read_text(encoding="utf-8")


def recorded(job: Job) -> JobResult:
    return JobResult.from_json(recorded_text(job))


def recorded_table(job: Job, **changes: Any) -> TableResult:
    """The table of the recorded result with other values. Raises for a count that the job does not write."""
    (table,) = recorded(job).tables
    counts: Mapping[str, int] = changes.pop("counts", {})
    if invented := counts.keys() - table.counts.keys():
        raise KeyError(f"{job} writes no count {', '.join(sorted(invented))}")
    return replace(table, counts={**table.counts, **counts}, **changes)


def compare_or_record(job: Job, table: TableResult, *, places: Collection[str] = ()) -> None:
    """`table` is what the job said of its table just now; `places` name fields that are places in a log."""
    tables = (replace(table, table="orders"),)
    result = JobResult(job=job, pipeline="shop", attempt=ATTEMPT, tables=tables, seconds={"all": 0.0})
    document = _comparable(json.loads(result.to_json()), places)
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    if os.environ.get("RECORD_RESULTS"):
        _file(job).write_text(text, encoding="utf-8")
    # As it is read: a field that a later release adds is not in the file, and has its default.
    assert recorded(job) == JobResult.from_json(text)


def _comparable(value: Any, places: Collection[str]) -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        fixed = dict.fromkeys(_RATES, 0) | dict.fromkeys(places, "0/0")
        return {name: fixed.get(name, _comparable(each, places)) for name, each in value.items()}
    if isinstance(value, list):
        return [_comparable(each, places) for each in value]
    return 0.0 if isinstance(value, float) else value


def _file(job: Job) -> Path:
    return _FOLDER / f"{job}.json"
