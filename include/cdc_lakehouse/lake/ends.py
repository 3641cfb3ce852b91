"""What a table has read of all that Kafka held at some moment."""

from __future__ import annotations

from cdc_lakehouse.lake.ledger import Ends, Ledger, incarnations, topic_of


def has_read(ledger: Ledger, ends: Ends | None) -> bool:
    """Whether the table has all that Kafka held then; False while nobody knows what it held."""
    if not ends:
        return False
    return all(
        end == 0 or (ledger.end(source, partition) or 0) >= end
        for source, partitions in ends.items()
        for partition, end in partitions.items()
    )


def is_of_the_past(ledger: Ledger, ends: Ends | None) -> bool:
    """Whether a topic was made again since: nobody will read the old one to its end any more."""
    for source in ends or ():
        known = incarnations(ledger, topic_of(source))
        if known and known[-1] != source:
            return True
    return False
