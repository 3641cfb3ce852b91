"""How Spark's Kafka source reads: in large pieces, without waiting for what is behind the end."""

from __future__ import annotations

SOURCE_SETTINGS = {
    # Behind the last record a client asks for the next ones at once, and on that connection the broker
    # answers nothing else before it gives up waiting for them: half a second by default, per partition.
    "fetch.max.wait.ms": "10",
    # Behind every poll Spark asks for the first and the last offset of the partition, two round trips that
    # nothing overlaps with. Of Kafka's usual 500 records at a time that is four thousand for a million.
    # More at a time would have to fit into memory, decompressed, once per task.
    "max.poll.records": "5000",
    # A poll gives out what one fetch brought: as much as that many records of usual size.
    "max.partition.fetch.bytes": str(2 * 2**20),
    # Kafka's usual 64 KiB wake the reader once for each of them.
    "receive.buffer.bytes": str(2**20),
    # Spark makes a client per partition and run, and nobody looks into its metrics.
    "enable.metrics.push": "false",
    "auto.include.jmx.reporter": "false",
}
"""For the Java client, beside those of the connection."""
