"""The decision that ends the reading of a table that its source has dropped; its rows stay. No I/O.

The decision switches nothing off. A topic that exists is read in any case: if records come again, the table
goes on by itself, and a topic that was made again is `TOPIC_RECREATED` as for other tables.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from cdc_lakehouse.bronze.decided import Named, require_what_stands
from cdc_lakehouse.bronze.incarnations import current_source
from cdc_lakehouse.bronze.losses import go_on_behind, told, unread
from cdc_lakehouse.config.topics import is_pattern
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.ledger import Ledger, has_ended, step_name, topics_of

_NAME = re.compile(r"step(?P<step>[0-9]+)")


def end_reading(ledger: Ledger, facts: ClusterFacts, *, named: Named | None) -> tuple[Ledger, dict[str, Any]]:
    """Return the ledger that misses none of the topics that a person ends, and the decision.

    Offsets that Kafka was seen to have and that were not read become a gap. Where no topic is left to end, a
    decision that names an older step was carried out by an earlier try. Any other decision raises
    `DecisionOutdatedError`.
    """
    if named is None:
        return ledger, {}
    sources = _sources_that_can_end(ledger, facts)
    if not sources and ledger.ended and named and all(_step_in(name) < ledger.seq for name in named):
        return ledger, {}
    standing = frozenset({step_name(ledger)}) if sources else frozenset[str]()
    require_what_stands("stop_reading", table=ledger.table, named=named, standing=standing)
    left = unread(ledger, sources)
    after = replace(go_on_behind(ledger, left), ended=tuple(sorted({*ledger.ended, *sources})))
    return after, {"stop_reading": {"ended": sorted(sources), "left": told(left)}}


def is_not_missed(ledger: Ledger, topic: str, *, facts: ClusterFacts) -> bool:
    """Return whether a topic is gone and a person ended it; a pattern without a match means all topics."""
    if topic in facts.topics or topic in facts.silent:
        return False
    return has_ended(ledger, None if is_pattern(topic) else topic)


def _sources_that_can_end(ledger: Ledger, facts: ClusterFacts) -> tuple[str, ...]:
    """Return sources of topics that are gone and not ended; of all topics where none is gone or has news."""
    current = {topic: current_source(ledger, topic) for topic in topics_of(ledger)}
    sources = {topic: source for topic, source in current.items() if source is not None}
    gone = sources.keys() - facts.topics.keys() - facts.silent.keys()
    left = [source for topic, source in sources.items() if topic in gone and source not in ledger.ended]
    if gone or any(_has_news(ledger, topic, facts) for topic in sources):
        return tuple(left)
    return tuple(source for source in sources.values() if source not in ledger.ended)


def _has_news(ledger: Ledger, topic: str, facts: ClusterFacts) -> bool:
    """Return whether a topic has unread records, or Kafka did not say."""
    topic_facts = facts.topics.get(topic)
    if topic_facts is None:
        return True
    return any(
        ledger.end(topic_facts.source, partition) != offsets.latest
        for partition, offsets in topic_facts.partitions.items()
    )


def _step_in(name: str) -> float:
    """Return the step that a decision names; infinity where it names none."""
    match = _NAME.fullmatch(name)
    return float("inf") if match is None else int(match["step"])
