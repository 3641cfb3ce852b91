"""Who the broker says it is: a recorded ledger names ids that no other broker can be given.

Lives in the test's own drivers. The product asks its broker, always.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any

from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts

VARIABLE = "CRASH_IDENTITY"


@dataclass(frozen=True, slots=True)
class Identity:
    cluster_id: str
    topic_ids: Mapping[str, str]

    @classmethod
    def of(cls, facts: ClusterFacts) -> Identity:
        return cls(facts.cluster_id, {name: topic.topic_id for name, topic in facts.topics.items()})

    def as_variable(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self))}


current: ContextVar[Identity | None] = ContextVar("identity", default=None)


def of_order(order: Mapping[str, Any], variable: str | None) -> Identity | None:
    """The order's own, none for one that wants the truth, or else that of the process."""
    if "identity" in order:
        return Identity(**order["identity"])
    return None if variable is None or order.get("real_ids") else Identity(**json.loads(variable))


def install() -> None:
    """Once per process; an order without an identity passes through."""
    facts, topic_ids = Cluster.facts, Cluster.topic_ids

    def told_facts(self: Cluster, topics: Collection[str]) -> ClusterFacts:
        found, identity = facts(self, topics), current.get()
        if identity is None:
            return found
        renamed = {
            name: replace(topic, topic_id=identity.topic_ids.get(name, topic.topic_id))
            for name, topic in found.topics.items()
        }
        return replace(found, cluster_id=identity.cluster_id, topics=renamed)

    def told_ids(self: Cluster, topics: Collection[str]) -> dict[str, str]:
        identity = current.get()
        known = {} if identity is None else identity.topic_ids
        return {name: known.get(name, id_) for name, id_ in topic_ids(self, topics).items()}

    setattr(Cluster, "facts", told_facts)  # noqa: B010
    setattr(Cluster, "topic_ids", told_ids)  # noqa: B010
