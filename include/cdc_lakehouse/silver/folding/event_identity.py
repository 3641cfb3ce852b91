"""Which event is which, however often and from wherever it was sent (`cdc-semantics` rule 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.coordinates import TOPIC_ID
from cdc_lakehouse.lake.names import quoted

TOPIC = "_cdc_topic"
"""Positions of two servers that share a table may be the same."""
COORDINATE = "_cdc_coordinate"
"""Where the event lies in its topic; null where its position tells it apart from all others."""

_POSITION, _TX = "_cdc_position", "_cdc_tx_id"
_OF_PLACE = ("epoch", "phase", "streamed", "row", "order_in_tx", "kind")
_OF_COORDINATE = (TOPIC_ID, "partition", "offset")


def coordinate(*, has_key: bool) -> Column:
    """Of a bronze row without a key that no place in the log tells apart: all rows of a snapshot share one,
    and so do rows of one COPY, unless the connector counts the events of a transaction.

    Such rows stand there twice if they are sent again, which is better than not at all.
    """
    is_uncounted = (F.col("position.order_in_tx") == 0) & F.col("source.pos").isNull()
    shares = (F.col("op") == Operation.READ) | ((F.col("op") == Operation.CREATE) & is_uncounted)
    own = F.struct(F.col(TOPIC_ID), F.col("partition"), F.col("offset"))
    return F.when(F.col("key").isNull() & shares if has_key else shares, own)


def once_each(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Rows of append silver without repetitions: the one that names the smallest commit before it is kept,
    which is the one that was sent first (rule 2.2)."""
    number, commit = "_cdc_repetition", F.col(_POSITION)["commit"]
    same = Window.partitionBy(*_identity("", keys)).orderBy(commit)
    return rows.withColumn(number, F.row_number().over(same)).where(F.col(number) == 1).drop(number)


def is_same_event(one: str, other: str, keys: Sequence[str]) -> Column:
    """Of rows under these aliases."""
    pairs = zip(_identity(f"{one}.", keys), _identity(f"{other}.", keys), strict=True)
    return reduce(and_, (a.eqNullSafe(b) for a, b in pairs))


def _identity(alias: str, keys: Sequence[str]) -> list[Column]:
    """A transaction that is sent again may name another commit before it; without one the commit counts."""
    position, at, tx = F.col(f"{alias}{_POSITION}"), F.col(f"{alias}{COORDINATE}"), F.col(f"{alias}{_TX}")
    return [
        *(position[field] for field in _OF_PLACE),
        F.when(tx.isNull(), position["commit"]),
        tx,
        F.col(f"{alias}_cdc_op"),
        F.col(f"{alias}{TOPIC}"),
        *(at[field] for field in _OF_COORDINATE),
        *(F.col(f"{alias}{quoted(name)}") for name in keys),
    ]
