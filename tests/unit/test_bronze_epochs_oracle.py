"""Epochs of whole drains: the product and the specification, over made-up histories of a source.

No drain meets two snapshots: the specification takes one partition after the other, and not the log's order.
"""

from __future__ import annotations

from typing import Any

from epoch_batches import Bronze, Read, Record, Streamed  # type: ignore[import-not-found]
from hypothesis import given, settings
from hypothesis import strategies as st
from orders_in_kafka import TOPIC  # type: ignore[import-not-found]
from test_bronze_epochs_model import by_partition, drained, histories  # type: ignore[import-not-found]

from epochs_oracle import Epochs  # type: ignore[import-not-found]


def row_of(at: str, record: Record) -> dict[str, Any]:
    match record:
        case Read(tx_id, place=(commit, row)):
            return {"at": at, "tx": tx_id, "position": [0, commit, 0, row, 0, 1]}
        case Streamed(commit, lsn):
            return {"at": at, "tx": lsn, "position": [1, commit or 0, 1, lsn, 0, 1]}
    raise ValueError(record)


@settings(max_examples=300, deadline=None)
@given(sent=histories(), data=st.data())
def test_each_row_has_the_epoch_that_the_specification_says(sent, data):
    logs, bronze, oracle = by_partition(sent), Bronze.empty(), Epochs()
    specified: dict[int, list[int]] = {number: [] for number in logs}
    firsts = [n for n, (_, each) in enumerate(sent) if n and each.incarnation > sent[n - 1][1].incarnation]
    for time in sorted({*firsts, *data.draw(st.lists(st.integers(1, len(sent)), max_size=4)), len(sent)}):
        now = {number: len(log) for number, log in by_partition(sent[:time]).items()}
        rows = [
            row_of(f"{number}@{offset}", logs[number][offset].record)
            for number, end in now.items()
            for offset in range(bronze.end(TOPIC, number), end)
        ]
        drained(bronze, list(now.values()), logs)
        for row in oracle.drain(rows):
            specified[int(row["at"].partition("@")[0])].append(row["epoch"])

    assert {number: bronze.epochs(number) if log else [] for number, log in logs.items()} == specified
