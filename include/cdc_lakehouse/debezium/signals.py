"""The statements by which a person asks a connector for a snapshot, and what shows that it ran."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum

from cdc_lakehouse.debezium.topic_names import prefix_and_relation


class SnapshotKind(StrEnum):
    INCREMENTAL = "incremental"
    """Sends every row again beside the stream; rows that are gone at the source stay in silver."""
    BLOCKING = "blocking"
    """A full one, for which the stream waits: silver then has no other rows."""


_SHOWN_BY = {
    # `snapshot-window-…` rows of the signal table show nothing: they come where SELECT is refused, too.
    SnapshotKind.INCREMENTAL: "the next ingest counts the table's rows as `appended`",
    SnapshotKind.BLOCKING: (
        "the next ingest counts the table's rows as `appended` and reports `epochs_opened`, `full snapshot`"
    ),
}


MOST_DATA = 2048
"""Characters of a signal's data that the table of signals takes, as Debezium's manual declares it."""


def snapshot_data(kind: SnapshotKind, relations: Iterable[str], *, condition: str | None = None) -> str:
    """Return the data of an `execute-snapshot` signal; with `condition` only of rows that meet it."""
    names = list(relations)
    data: dict[str, object] = {"data-collections": names, "type": kind.value}
    if condition is not None:
        data["additional-conditions"] = [{"data-collection": name, "filter": condition} for name in names]
    return json.dumps(data)


def snapshot_advice(kind: SnapshotKind, topics: Iterable[str], *, signals: str) -> str:
    """Return the statement for the source database, and how to see its effect; `signals` is its table."""
    # A topic that is not named after its table: the person has to.
    relations = [prefix_and_relation(topic)[1] or "<schema>.<table>" for topic in topics]
    data = snapshot_data(kind, relations)
    values = f"(gen_random_uuid(), 'execute-snapshot', '{data}')"
    statement = f"INSERT INTO {signals} VALUES {values};"  # noqa: S608 - a person executes it
    return (
        f"By hand, the signal in the source database: {statement} It ran if {_SHOWN_BY[kind]}. If not, look "
        "for the table in Kafka Connect's log: mostly the connector's role may not SELECT it (`make check` "
        "says so)."
    )
