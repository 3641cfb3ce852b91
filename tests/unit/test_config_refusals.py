"""Whatever is wrong with a pipeline file is told at once, with line, table and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lakehouse.config.loader import load_pipeline
from cdc_lakehouse.errors import InvalidPipelineError

HEAD = """\
version: 1
name: shop
owner: data-platform
schedule: "*/15 * * * *"
start_date: 2026-01-01
"""
TABLES = """\
tables:
  - name: orders
    topics: [shop.public.orders]
"""


@pytest.fixture
def write(tmp_path: Path):
    def write_text(text: str, name: str = "shop") -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def refusal_of(path: Path) -> InvalidPipelineError:
    with pytest.raises(InvalidPipelineError) as caught:
        load_pipeline(path)
    return caught.value


def test_all_problems_of_a_file_are_told_at_once(write):
    text = HEAD.replace("name: shop", "name: Shop") + "shedule: x\n" + TABLES.replace("topics", "topcis")
    error = refusal_of(write(text))

    assert error.where == ""
    assert error.problem.splitlines() == [
        "5 problems",
        "  line 2: `name: Shop` does not match the file, which is called shop.yaml; make them the same",
        "  line 2: `name` 'Shop' is not a name: a small letter first, "
        "then small letters, digits and '_', 63 at most",
        "  line 6: unknown key `shedule`; did you mean `schedule`?",
        "  line 8, table orders: `topics` is missing",
        "  line 9, table orders: unknown key `topcis`; did you mean `topics`?",
    ]


def test_one_problem_reads_as_one_line(write):
    path = write(HEAD + TABLES + "    raw: sometimes\n")

    assert str(refusal_of(path)) == (
        f"{path}:9, table orders: `raw` must be 'undecodable' or 'always', not 'sometimes'"
    )


@pytest.mark.parametrize(
    ("line", "where", "problem"),
    [
        (
            "history: always",
            ":9, table orders",
            "`history` must be true, false or a mapping with `columns`, not 'always'",
        ),
        (
            "quarantine_limit: 5",
            ":9, table orders",
            "`quarantine_limit` must be a mapping of keys to values, not 5",
        ),
        (
            "quarantine_limit: {share: 2}",
            ":9, table orders",
            "`quarantine_limit.share` must be at most 1.0, not 2",
        ),
        (
            "on_quarantine: maybe",
            ":9, table orders",
            "`on_quarantine` must be 'continue', 'hold' or 'stop', not 'maybe'",
        ),
        ("deletes: sometimes", ":9, table orders", "`deletes` must be 'hard' or 'soft', not 'sometimes'"),
        ("group: outcome", ":9, table orders", "`group` 'outcome' is the id of a task of every pipeline"),
        ("schedule: x", ":9, table orders", "`schedule` does not stand here but under `maintenance:`"),
        ("raw:", ":9, table orders", "`raw` is empty; give it a value or leave the line out"),
        (
            "max_offsets_per_trigger: lots",
            ":9, table orders",
            "`max_offsets_per_trigger` must be a whole number, not 'lots'",
        ),
        (
            "max_offsets_per_trigger: 0",
            ":9, table orders",
            "`max_offsets_per_trigger` must be at least 1, not 0",
        ),
    ],
)
def test_a_tables_wrong_key_is_named_with_line_and_table(write, line, where, problem):
    error = refusal_of(write(HEAD + TABLES + f"    {line}\n"))

    assert (error.where, error.problem) == (where, problem)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("timezone: Europe", "`timezone` 'Europe' is not a time zone, like 'UTC' or 'Europe/Vienna'"),
        ("timezone: ../etc", "`timezone` '../etc' is not a time zone, like 'UTC' or 'Europe/Vienna'"),
        (
            "start: noon",
            "`start` 'noon' is neither 'earliest', 'latest' nor a time like '2026-01-31T00:00:00Z'",
        ),
        ("start: 2026-01-31", "`start` '2026-01-31' needs a time zone, like '2026-01-31T00:00:00Z'"),
        ("execution_timeout: 0h", "`execution_timeout` '0h' is not a duration like '90m', '12h' or '7d'"),
        (
            "execution_timeout: 2 hours",
            "`execution_timeout` '2 hours' is not a duration like '90m', '12h' or '7d'",
        ),
        ("retry: 3", "`retry` must be a mapping of keys to values, not 3"),
        ("retry: {attempts: 50}", "`retry.attempts` must be at most 20, not 50"),
        (
            "maintenance: {schedule: 0 0 31 2 *}",
            "`maintenance.schedule` '0 0 31 2 *' names a moment that never comes",
        ),
        (
            "maintenance: {schedule: '@daily'}",
            "`maintenance.schedule` '@daily' is not a cron expression of five fields, like '*/15 * * * *'",
        ),
        (
            "maintenance: {vacuum_retention: 1m}",
            "`maintenance.vacuum_retention` must be at least 1d, not '1m': "
            "what an attempt still needs would go",
        ),
        (
            "maintenance: {vacuum_retention: 31d}",
            "`maintenance.vacuum_retention` must be at most 30d, as long as the Delta log is kept, "
            "not '31d': no version that is older could be read",
        ),
        (
            "maintenance: {checkpoint_retention: 1m}",
            "`maintenance.checkpoint_retention` must be at least 1h, not '1m': "
            "what an attempt still needs would go",
        ),
        (
            "maintenance: {tombstone_retention: 1m}",
            "`maintenance.tombstone_retention` must be at least 1d, not '1m': "
            "what an attempt still needs would go",
        ),
        ("raw: always", "`raw` does not stand here but under `defaults:`"),
        ("defaults: {key: [id]}", "`key` does not stand here but under `tables:`"),
        ("owner: somebody", "the key `owner` is written twice, first on line 3"),
        ("connections: {kafka: ''}", "`connections.kafka` is empty"),
        (
            "connections: {kafka: 5}",
            "`connections.kafka` must be text; put it in quotes if it is meant, not 5",
        ),
    ],
)
def test_a_pipelines_wrong_key_is_named_with_its_line(write, line, problem):
    error = refusal_of(write(HEAD + f"{line}\n" + TABLES))

    assert (error.where, error.problem) == (":6", problem)


def test_a_table_that_is_listed_twice_is_refused(write):
    error = refusal_of(write(HEAD + TABLES + "  - {name: orders, topics: [x]}\n"))

    assert (error.where, error.problem) == (
        ":9, table orders",
        "the table `orders` is listed twice, first on line 7",
    )


def test_a_topic_that_feeds_two_tables_is_refused(write):
    error = refusal_of(write(HEAD + TABLES + "  - {name: other, topics: [shop.public.orders]}\n"))

    assert (error.where, error.problem) == (
        ":9, table other",
        "the topic `shop.public.orders` is listed twice, first on line 8",
    )


@pytest.mark.parametrize("name", ["orders__history", "orders__tombstones", "orders__quarantine"])
def test_a_table_may_not_take_the_folder_of_a_side_table(write, name):
    error = refusal_of(write(HEAD + f"tables:\n  - {{name: {name}, topics: [x]}}\n"))

    assert error.problem == f"`name` '{name}' ends like one of the tables that stand beside a silver table"


def test_a_pipeline_may_not_take_the_dag_id_of_anothers_maintenance(write):
    text = (HEAD + TABLES).replace("name: shop", "name: shop_maintenance")
    error = refusal_of(write(text, "shop_maintenance"))

    assert (
        error.problem
        == "`name` 'shop_maintenance' would take the DAG id that another pipeline's maintenance has"
    )


@pytest.mark.parametrize("topic", ["a b", ".", "..", "ö", "a/b"])
def test_a_topic_name_that_kafka_refuses_is_refused_here(write, topic):
    error = refusal_of(write(HEAD + f"tables:\n  - {{name: a, topics: ['{topic}']}}\n"))

    assert f"'{topic}' is not a topic name" in error.problem


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("", "", "the file is empty"),
        ("# only a comment\n", "", "the file is empty"),
        ("- a\n", ":1", "the file must hold keys like `name:` and `tables:`, not a list or a value"),
        ("shop\n", ":1", "the file must hold keys like `name:` and `tables:`, not a list or a value"),
        (
            "a: [\n",
            ":2",
            "this is not YAML: while parsing a flow node, "
            "expected the node content, but found '<stream end>'",
        ),
        (
            "a: 1\n\tb: 2\n",
            ":2",
            "this is not YAML: while scanning for the next token, "
            "found character '\\t' that cannot start any token",
        ),
        (
            "---\na: 1\n---\nb: 2\n",
            ":3",
            "this is not YAML: expected a single document in the stream, but found another document",
        ),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(write, text, where, problem):
    error = refusal_of(write(text))

    assert (error.where, error.problem) == (where, problem)


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "shop.yaml"
    path.write_bytes(b"name: \xff")

    assert refusal_of(path).problem == "the file is not UTF-8 text (byte 6)"


def test_a_yaml_tag_is_refused_and_never_executed(write):
    error = refusal_of(write(HEAD.replace("data-platform", "!!python/name:os.system x") + TABLES))

    assert (error.where, error.problem) == (
        ":3",
        "the YAML tag tag:yaml.org,2002:python/name:os.system is not read here",
    )


def test_an_alias_that_contains_itself_is_refused(write):
    error = refusal_of(write(HEAD + "retry: &r\n  attempts: *r\n" + TABLES))

    assert "an alias may not point to something that contains it" in error.problem


def test_a_section_of_the_wrong_form_is_not_quoted_back(write):
    error = refusal_of(write(HEAD + "owner2: x\nretry: [1]\ntables: {orders: 1}\n"))

    assert error.problem.splitlines() == [
        "3 problems",
        "  line 6: unknown key `owner2`; did you mean `owner`?",
        "  line 7: `retry` must be a mapping of keys to values",
        "  line 8: `tables` must be a list",
    ]


@pytest.mark.parametrize("key", ["vacuum_retention", "tombstone_retention"])
def test_a_retention_must_outlive_the_longest_attempt(write, key):
    text = HEAD + f"execution_timeout: 13h\nmaintenance: {{{key}: 1d}}\n" + TABLES

    assert refusal_of(write(text)).problem == (
        f"`maintenance.{key}` '1d' must be at least twice `execution_timeout` ('13h'): "
        "an attempt that still runs needs what it keeps"
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("'hex:5g'", "'hex:5g' is not 'hex:' and then pairs of hexadecimal digits"),
        ("'hex:'", "'hex:' names no bytes"),
        ("''", "is empty"),
        ("[gone, 'hex:']", "'hex:' names no bytes"),
        ("[]", "is empty"),
    ],
)
def test_a_placeholder_that_no_connector_could_have_is_refused(write, value, problem):
    error = refusal_of(write(HEAD + f"unavailable_value_placeholder: {value}\n" + TABLES))

    assert problem in error.problem


def test_a_promise_of_freshness_is_a_duration(write):
    error = refusal_of(write(HEAD + TABLES + "    fresh_within: soon\n"))

    assert error.problem == "`fresh_within` 'soon' is not a duration like '90m', '12h' or '7d'"
