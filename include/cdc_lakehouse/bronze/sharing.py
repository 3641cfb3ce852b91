"""Which tables of a group are read by one query together: a decision on backlogs, no I/O.

A query costs most of a second before it reads anything, which is more than the records of a small table do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.kafka.facts import TopicFacts
from cdc_lakehouse.lake.ledger import Ranges
from cdc_lakehouse.lake.progress import Span

FEW = 5_000
"""Records of a table that is read together with others; one with more is worth a query of its own."""
MOST_RECORDS = 100_000
"""Of all tables in one query, which makes one batch of them."""
_MOST_TABLES = 200

Offsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """What one query reads for several tables; a topic belongs to one of them."""

    plans: tuple[DrainPlan, ...]

    @property
    def table(self) -> str:
        """As a log tells it."""
        return f"{self.plans[0].table} and {len(self.plans) - 1} more"

    @property
    def topics(self) -> tuple[TopicFacts, ...]:
        return tuple(topic for plan in self.plans for topic in plan.topics)

    @property
    def start(self) -> Offsets:
        return {topic: offsets for plan in self.plans for topic, offsets in plan.start.items()}

    @property
    def backlog(self) -> int:
        return sum(plan.backlog for plan in self.plans)

    def added(self, start: Offsets, end: Offsets) -> Ranges:
        """Of all tables: no two have a source in common."""
        return {source: own for plan in self.plans for source, own in _added(plan, start, end).items()}

    def by_table(self, added: Ranges) -> dict[str, Ranges]:
        """What of `added` is whose; nothing for a table that has no part in it."""
        tables = {source: plan.table for plan in self.plans for source in plan.sources.values()}
        found: dict[str, dict[str, Mapping[int, Span]]] = {}
        for source, partitions in added.items():
            found.setdefault(tables[source], {})[source] = partitions
        return dict(found)


def share_out(plans: Iterable[tuple[DrainPlan, int]]) -> list[SharedPlan]:
    """The small ones in groups, each of which is read at once; those left out have queries of their own.

    Beside a plan stands how many records of its table are committed at once at most. A table whose gaps
    are to be filled first is read alone.
    """
    small = (plan for plan, at_once in plans if 0 < plan.backlog <= min(FEW, at_once) and not plan.fill.held)
    return [SharedPlan(tuple(group)) for group in _groups(small) if len(group) > 1]


def _groups(plans: Iterable[DrainPlan]) -> Iterator[list[DrainPlan]]:
    group: list[DrainPlan] = []
    for plan in plans:
        if len(group) == _MOST_TABLES or sum(each.backlog for each in group) + plan.backlog > MOST_RECORDS:
            yield group
            group = []
        group.append(plan)
    yield group


def _added(plan: DrainPlan, start: Offsets, end: Offsets) -> Ranges:
    own = plan.sources.keys()
    return plan.added(start, {topic: offsets for topic, offsets in end.items() if topic in own})
