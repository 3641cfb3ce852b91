"""The decision that ends the reading of a table that its source has dropped; its rows stay. No I/O.

The decision switches nothing off. A topic that exists is read in any case: if records come again, the table
goes on by itself, and a topic that was made again is `TOPIC_RECREATED` as for other tables.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from cdc_lakehouse.bronze.decided import Named, decision_text, require_what_stands
from cdc_lakehouse.bronze.incarnations import current_source
from cdc_lakehouse.bronze.losses import go_on_behind, has_passed, told
from cdc_lakehouse.config.topics import is_pattern
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.ledger import Ledger, ending_names, has_ended, topics_of, unread

_NAME = re.compile(r"step(?P<step>[0-9]+)")


def end_reading(ledger: Ledger, facts: ClusterFacts, *, named: Named | None) -> tuple[Ledger, dict[str, Any]]:
    """Return the ledger that misses none of the topics that a person ends, and the decision.

    Offsets that Kafka was seen to have and that were not read become a gap, which the decision names. Where
    no topic is left to end, a decision that names an older step, and offsets that were passed, was carried
    out by an earlier try. Any other decision raises `DecisionOutdatedError`.
    """
    if named is None:
        return ledger, {}
    sources = _sources_that_can_end(ledger, facts)
    if not sources and ledger.ended and named and all(_is_done(ledger, name) for name in named):
        return ledger, {}
    standing = names_of_ending(ledger, facts)
    require_what_stands("stop_reading", table=ledger.table, named=named, standing=standing)
    left = unread(ledger, sources)
    after = replace(go_on_behind(ledger, left), ended=tuple(sorted({*ledger.ended, *sources})))
    return after, {"stop_reading": {"ended": sorted(sources), "left": told(left)}}


def describe_ending(ledger: Ledger, facts: ClusterFacts) -> str:
    """Return the decision that ends the reading of what is gone, as a sentence prints it.

    Empty where nothing was read that could end.
    """
    names = names_of_ending(ledger, facts)
    return f"; stop_reading: `{decision_text(ledger.table, names)}`" if names else ""


def names_of_ending(ledger: Ledger, facts: ClusterFacts) -> Named:
    """Return what a decision must name to end the reading of what is gone; nothing where no topic can end."""
    sources = _sources_that_can_end(ledger, facts)
    return ending_names(ledger, unread(ledger, sources)) if sources else frozenset()


def is_reading_ended(ledger: Ledger) -> bool:
    """Return whether a person ended the reading of all topics that the table has read."""
    sources = [current_source(ledger, topic) for topic in topics_of(ledger)]
    return bool(ledger.ended) and all(source in ledger.ended for source in sources if source is not None)


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


def _is_done(ledger: Ledger, name: str) -> bool:
    """Return whether the ledger has passed the step, or the offsets, that a decision names."""
    match = _NAME.fullmatch(name)
    return has_passed(ledger, name) if match is None else int(match["step"]) < ledger.seq
