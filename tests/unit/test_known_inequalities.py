"""The known inequalities are what captured records show, what the page says, and what preflight names."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lakehouse.debezium.inequalities import Inequality, Trait, Weight, columns_concerned
from cdc_lakehouse.debezium.known_inequalities import KNOWN_INEQUALITIES
from cdc_lakehouse.debezium.schema_facts import facts_of
from cdc_lakehouse.debezium.source_facts import SourceFacts
from cdc_lakehouse.preflight.inequalities import unseen_finding
from unit.captured_records import Topic, topics  # type: ignore[import-not-found]
from unit.postgres_differs import Difference, differences  # type: ignore[import-not-found]
from unit.postgres_facts import facts_of_column  # type: ignore[import-not-found]
from unit.postgres_known import KNOWN, covering  # type: ignore[import-not-found]

PAGE = Path(__file__).parents[2] / "include" / "docs" / "known-inequalities.md"
BY_ID = {each.id: each for each in KNOWN_INEQUALITIES}
TOPICS = pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.name)


def named(difference: Difference, *facts: SourceFacts) -> bool:
    """Whether one of the inequalities that it may be is told of one of these columns."""
    possible = [BY_ID[each] for each in covering(difference)]
    return bool(columns_concerned(possible, facts))


def test_the_table_has_an_entry_for_what_occurs_and_no_other():
    assert {known.id for known in KNOWN} == set(BY_ID)
    assert len(BY_ID) == len(KNOWN_INEQUALITIES)


@TOPICS
def test_what_differs_is_in_a_column_that_its_type_in_postgresql_names(topic: Topic):
    found = list(differences(topic))
    assert [each for each in found if not named(each, facts_of_column(topic, each.column))] == []


@TOPICS
def test_what_differs_is_in_a_column_that_its_schemas_name_or_is_told_as_unseen(topic: Topic):
    texts = [topic.schemas[number] for number in sorted({number for number, _ in topic.frames("value")})]
    shown = [facts for text in texts for facts in facts_of(text)]
    unseen = unseen_finding().sentence
    silent = [
        each
        for each in differences(topic)
        if not named(each, *(facts for facts in shown if facts.name == each.column))
        and not any(known in unseen for known in covering(each))
    ]
    assert silent == []


@TOPICS
def test_a_column_that_has_a_field_is_never_said_to_have_none(topic: Topic):
    shown = [facts for number, _ in topic.frames("value") for facts in facts_of(topic.schemas[number])]
    assert columns_concerned([BY_ID["no-field"]], shown) == ()


def row(known: Inequality) -> str:
    types = ", ".join(f"`{each}`" for each in known.types)
    needs = [] if known.trait is Trait.NONE else [known.trait.value]
    under = "; ".join([*needs, *(f"`{each}`" for each in known.settings)])
    where = f"{types}; {under}" if under else types
    return f"| {known.id} | {where} | {known.source} | {known.lake} | {known.why} | {known.way_out} |"


def test_the_page_shows_the_table():
    page = PAGE.read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| id ")]
    weights = [each for weight in Weight for each in KNOWN_INEQUALITIES if each.weight is weight]
    assert shown == [row(each) for each in weights]
