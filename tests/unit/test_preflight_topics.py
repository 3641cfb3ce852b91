"""What Kafka says of a topic becomes lines that name what will hurt later."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.preflight.topics import TopicKeeping, keeping_of, topic_findings

SHOP = Pipeline(
    version=1,
    name="shop",
    owner="me",
    schedule="* * * * *",
    start_date=date(2026, 1, 1),
    tables=(Table(name="orders", topics=("t",)),),
)
FACTS = ClusterFacts(
    cluster_id="c",
    topics={"t": TopicFacts("t", "id", {0: PartitionOffsets(5, 12), 1: PartitionOffsets(0, 3)})},
)
WEEK = TopicKeeping(compacted=False, retention=timedelta(days=7))


def lines_of(facts: ClusterFacts, keeping: dict[str, TopicKeeping]) -> list[str]:
    return [f"{found.level} {found.sentence}" for found in topic_findings(SHOP, facts, keeping)]


def test_a_healthy_topic_is_one_line():
    assert lines_of(FACTS, {"t": WEEK}) == ["ok partitions 2, offsets held 10, kept for 7 d"]


def test_a_missing_topic_is_a_problem_of_the_data():
    (finding,) = topic_findings(SHOP, ClusterFacts("c", {}), {})

    assert finding.sentence == "the topic t of orders does not exist in Kafka"
    assert finding.exit_code is ExitCode.DATA


def test_a_compacted_topic_is_flagged():
    assert lines_of(FACTS, {"t": TopicKeeping(compacted=True, retention=None)}) == [
        "ok partitions 2, offsets held 10, kept forever",
        "warning it is compacted, so Kafka throws older changes of a key away",
    ]


def test_a_retention_below_a_day_is_flagged():
    assert lines_of(FACTS, {"t": TopicKeeping(compacted=False, retention=timedelta(hours=2))}) == [
        "ok partitions 2, offsets held 10, kept for 2 h",
        "warning its records are kept for 2 h only",
    ]


def test_a_topic_whose_settings_are_hidden_is_flagged():
    assert lines_of(FACTS, {}) == [
        "ok partitions 2, offsets held 10, retention unknown",
        "warning Kafka does not show its retention to this login",
    ]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "604800000"}, WEEK),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, TopicKeeping(compacted=False, retention=None)),
        (
            {"cleanup.policy": "compact", "retention.ms": "604800000"},
            TopicKeeping(compacted=True, retention=None),
        ),
        (
            {"cleanup.policy": "compact,delete", "retention.ms": "604800000"},
            TopicKeeping(compacted=True, retention=timedelta(days=7)),
        ),
    ],
)
def test_kafkas_settings_say_how_long_records_stay(settings, expected):
    assert keeping_of(settings) == expected
