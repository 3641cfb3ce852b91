"""What a schema shows of a column at the source, and what becomes of it (`cdc-semantics` §7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc_lakehouse.debezium.inequalities import Concern, Inequality, Trait, Weight, columns_concerned
from cdc_lakehouse.debezium.schema_facts import facts_of, shows
from cdc_lakehouse.debezium.source_facts import SourceFacts


def only(type_: Any, **field: Any) -> SourceFacts:
    row = {"type": "record", "name": "Value", "fields": [{"name": "c", "type": type_, **field}]}
    envelope = {"type": "record", "name": "Envelope", "fields": [{"name": "before", "type": ["null", row]}]}
    (facts,) = facts_of(json.dumps(envelope))
    return facts


def named(name: str, kind: str = "long") -> dict[str, Any]:
    return {"type": kind, "connect.name": name}


@pytest.mark.parametrize(
    ("type_", "types"),
    [
        ("int", {"integer"}),
        ({"type": "int", "connect.type": "int16"}, {"smallint"}),
        ("string", set()),
        (named("io.debezium.time.MicroTimestamp"), {"timestamp without time zone"}),
        (["null", named("io.debezium.data.Enum", "string")], {"enum"}),
        ({"type": "array", "items": named("io.debezium.time.Time", "int")}, {"time without time zone[]"}),
        ({"type": "array", "items": "string"}, {"?[]"}),
        ("io.debezium.data.VariableScaleDecimal", {"numeric"}),
        (named("com.acme.Money"), set()),
        ({"type": "long", "connect.name": ["odd"]}, {"bigint"}),
    ],
)  # fmt: skip
def test_a_field_shows_the_types_that_its_column_may_have(type_, types):
    assert only(type_).types == types


def test_a_scale_that_postgresql_does_not_have_is_a_negative_one():
    decimal = {**named("org.apache.kafka.connect.data.Decimal", "bytes"), "precision": 5, "scale": 2046}

    assert only(decimal).types == {"numeric(p,-s)"}


def test_a_decimal_that_states_no_precision_is_money():
    decimal = {**named("org.apache.kafka.connect.data.Decimal", "bytes"), "precision": 64, "scale": 2}
    precise = {**decimal, "connect.parameters": {"connect.decimal.precision": "64"}}

    assert only(decimal).types == {"money"}
    assert only(precise).types == {"numeric(p,s)"}


def test_a_short_number_is_never_out_of_line():
    decimal = {**named("org.apache.kafka.connect.data.Decimal", "bytes"), "scale": 2}

    assert only({**decimal, "precision": 38}).is_out_of_line is False
    assert only({**decimal, "precision": 39}).is_out_of_line is None


def test_the_mode_of_times_is_shown_by_their_names():
    nanos = frozenset({"time.precision.mode=nanoseconds"})

    assert only(named("io.debezium.time.NanoTime")).settings == nanos


def test_a_default_hides_null_only_where_null_is_allowed():
    assert only(["string", "null"], default="new") == SourceFacts(
        name="c", settings=frozenset(), is_nullable=True, has_default=True
    )
    assert only("int", default=0).is_nullable is False
    assert only(["null", "string"], default=None).has_default is False


def inequality(*types: str, **changes: Any) -> Inequality:
    texts = dict.fromkeys(("source", "lake", "why", "way_out"), "-")
    return Inequality(**{"id": "x", "types": types, "weight": Weight.SOME, **texts, **changes})


def column(*types: str, **facts: Any) -> SourceFacts:
    return SourceFacts(name="c", types=frozenset(types), **facts)


@pytest.mark.parametrize(
    ("known", "facts", "concerns"),
    [
        (inequality("name"), column("name"), True),
        (inequality("name"), column("text"), False),
        (inequality("name"), column(), False),
        (inequality("*[]"), column("text[]"), True),
        (inequality("*[]"), column("text"), False),
        (inequality("date", settings=("m=iso",)), column("date"), True),
        (inequality("date", settings=("m=iso",)), column("date", settings=frozenset({"m=iso"})), True),
        (inequality("date", settings=("m=iso",)), column("date", settings=frozenset({"m=connect"})), False),
        (inequality("*", trait=Trait.NULL_AND_DEFAULT), column(is_nullable=True, has_default=True), True),
        (inequality("*", trait=Trait.NULL_AND_DEFAULT), column(), False),
        (inequality("*", trait=Trait.GENERATED), column(is_generated=True), True),
        (inequality("*", trait=Trait.GENERATED), column(), False),
        (inequality("path", trait=Trait.OLD_VALUE_NOT_SENT), column("path"), True),
        (inequality("path", trait=Trait.OLD_VALUE_NOT_SENT), column("path", is_out_of_line=False), False),
        (inequality("path", trait=Trait.OLD_VALUE_NOT_SENT), column("path", sends_old_values=True), False),
    ],
)
def test_an_inequality_concerns_columns_of_its_type_settings_and_trait(known, facts, concerns):
    assert known.concerns(facts) is concerns


def test_columns_are_told_by_inequality():
    first, second = inequality("name"), inequality("path", id="y")
    columns = [SourceFacts(name=name, types=frozenset({"name"})) for name in ("a", "b")]

    assert columns_concerned((second, first), columns) == (Concern(first, ("a", "b")),)


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        (inequality("date"), True),
        (inequality("date", "tid"), False),
        (inequality("*[]"), True),
        (inequality("*", trait=Trait.NULL_AND_DEFAULT), True),
        (inequality("*", trait=Trait.GENERATED), False),
        (inequality("numeric"), False),
        (inequality("numeric", settings=("decimal.handling.mode=precise",)), True),
    ],
)
def test_schemas_show_some_inequalities_always(known, shown):
    assert shows(known) is shown
