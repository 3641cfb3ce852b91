"""The registry client against a real HTTP server that fails as told."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from registry_server import FakeRegistry  # type: ignore[import-not-found]

from cdc_lakehouse.avro.writer import writer_schema
from cdc_lakehouse.config.rest_settings import RestSettings
from cdc_lakehouse.errors import NotSupportedYetError, RegistryUnavailableError
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.registry.versions import Version


@pytest.fixture
def fake():
    registry = FakeRegistry()
    yield registry
    registry.stop()


def client(fake: FakeRegistry, **options: Any) -> SchemaRegistry:
    return SchemaRegistry(fake.url + "/", first_wait_seconds=0.001, timeout_seconds=2, **options)


def test_a_schema_is_read_once(fake):
    fake.answers["/schemas/ids/5"] = {"schema": '"int"'}
    registry = client(fake)
    assert [registry.schema(5), registry.schema(5)] == ['"int"', '"int"']
    assert fake.calls == ["/schemas/ids/5"]


def test_an_id_that_nobody_knows_is_none_and_asked_once(fake):
    assert client(fake).schema(5) is None
    assert fake.calls == ["/schemas/ids/5"]


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 502, 503])
def test_a_passing_failure_is_tried_again(fake, status):
    fake.answers["/schemas/ids/5"] = {"schema": '"int"'}
    fake.failures = [status, status]
    assert client(fake).schema(5) == '"int"'


@pytest.mark.parametrize("status", [401, 408, 503])
def test_a_lasting_failure_is_unavailable_never_unknown(fake, status):
    fake.failures = [status] * 3
    with pytest.raises(RegistryUnavailableError) as caught:
        client(fake).schema(5)
    assert caught.value.reason == f"status {status}"
    assert len(fake.calls) == 3


def test_a_registry_that_is_down_is_unavailable():
    with pytest.raises(RegistryUnavailableError) as caught:
        SchemaRegistry("http://user:hush@127.0.0.1:1", attempts=1).schema(5)
    assert caught.value.reason == "ConnectError"
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}"])
def test_an_answer_that_makes_no_sense_is_unavailable(fake, body):
    fake.answers["/schemas/ids/5"] = body
    with pytest.raises(RegistryUnavailableError):
        client(fake).schema(5)


def version(subject: str, number: int, ref: int, text: str) -> dict[str, Any]:
    return {"subject": subject, "version": number, "id": ref, "schema": text}


def test_a_schema_is_asked_for_by_number_or_by_guid(fake):
    guid = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")
    fake.answers[f"/schemas/guids/{guid}"] = {"schema": '"int"', "guid": str(guid)}
    assert client(fake).schema(guid) == '"int"'


def test_versions_come_oldest_first_and_unknown_subjects_have_none(fake):
    fake.answers["/subjects/t-value/versions"] = [2, 1, 3]
    fake.answers["/subjects/t-value/versions/1"] = version("t-value", 1, 8, '"int"')
    fake.answers["/subjects/t-value/versions/2"] = version("t-value", 2, 3, '"long"')
    registry = client(fake)
    assert registry.versions("t-value") == [
        Version("t-value", 1, 8, '"int"'),
        Version("t-value", 2, 3, '"long"'),
    ]
    assert registry.versions("other") == []


def test_the_newest_version_is_one_call(fake):
    fake.answers["/subjects/t-value/versions/latest"] = version("t-value", 4, 9, '"int"')
    registry = client(fake)
    assert registry.latest("t-value") == Version("t-value", 4, 9, '"int"')
    assert registry.latest("other") is None
    assert registry.calls == 2


LIST = "/schemas?subjectPrefix=t-&deleted=true&limit=1000&offset="


@pytest.mark.parametrize("status", [400, 405, 501])
def test_a_registry_that_refuses_to_list_is_asked_for_single_versions(fake, status):
    fake.failures = [status]
    registry = client(fake)
    assert registry.listed("t") is None
    assert registry.listed("u") is None
    assert len(fake.calls) == 1


def test_a_registry_that_turns_no_pages_is_asked_for_single_versions(fake):
    page = [version("t-value", number, number, '"int"') for number in range(1000)]
    fake.answers |= {f"{LIST}{offset}": page for offset in (0, 1000)}
    assert client(fake).listed("t") is None


def test_both_subjects_of_a_topic_are_listed_in_one_call_without_its_neighbours(fake):
    fake.answers[f"{LIST}0"] = [
        version("t-archive-value", 1, 1, '"bytes"'),
        version("t-value", 2, 5, '"long"'),
        version("t-value", 1, 4, '"int"'),
        version("t-key", 1, 3, '"string"'),
        version("t-values", 1, 2, '"float"'),
    ]
    registry = client(fake)
    assert registry.listed("t") == [
        Version("t-value", 1, 4, '"int"'),
        Version("t-key", 1, 3, '"string"'),
        Version("t-value", 2, 5, '"long"'),
    ]
    assert registry.calls == 1


def test_a_list_that_fills_a_page_has_another(fake):
    page = [version("t-archive-value", number, number, '"int"') for number in range(1, 1001)]
    fake.answers[f"{LIST}0"] = page
    fake.answers[f"{LIST}1000"] = [version("t-value", 1, 4001, '"int"')]
    assert client(fake).listed("t") == [Version("t-value", 1, 4001, '"int"')]


def test_a_registry_without_lists_is_asked_for_one_only_once(fake):
    registry = client(fake)
    assert [registry.for_table().listed(topic) for topic in ("t", "u", "v")] == [None] * 3
    assert fake.calls == [f"{LIST}0"]


def test_calls_are_counted_per_table_and_knowledge_is_shared(fake):
    fake.answers["/schemas/ids/5"] = {"schema": '"int"'}
    registry = client(fake)
    one, other = registry.for_table(), registry.for_table()
    one.schema(5)
    assert (other.schema(5), one.calls, other.calls) == ('"int"', 1, 0)


def test_an_outage_is_waited_for_once_and_not_by_every_table(fake):
    fake.failures = [503] * 3
    registry = client(fake)
    for _ in range(4):
        with pytest.raises(RegistryUnavailableError, match="status 503"):
            registry.for_table().schema(5)
    assert len(fake.calls) == 3


def test_a_registry_that_rested_is_asked_again(fake):
    fake.answers["/schemas/ids/5"] = {"schema": '"int"'}
    fake.failures = [503] * 3
    registry = client(fake, rest_seconds=0)
    with pytest.raises(RegistryUnavailableError):
        registry.schema(5)
    assert registry.schema(5) == '"int"'


def test_its_name_is_readable_and_the_same_for_every_spelling_of_its_url():
    names = [
        SchemaRegistry(url).name
        for url in (
            "http://user:hush@Registry.example/apis/ccompat/v7",
            "http://registry.example:80/apis/ccompat/v7/",
            "http://registry.example/apis/ccompat-v7",
        )
    ]
    assert names[0] == names[1]
    assert names[0].rpartition("-")[0] == "registry.example-80-apis-ccompat-v7"
    assert names[0] != names[2]


def test_a_registry_that_was_rebuilt_has_another_name_at_the_same_url():
    url = "http://registry.example/apis"
    before, after = (SchemaRegistry(RestSettings(url, generation=each)).name for each in (None, "2"))
    assert after == f"{before}-2"


def test_login_and_password_are_sent(fake):
    SchemaRegistry(RestSettings(fake.url, "me", "word")).schema(5)
    assert fake.authorizations == ["Basic bWU6d29yZA=="]


def test_referenced_types_are_written_in_where_they_are_first_named(fake):
    point = {"type": "record", "name": "Point", "namespace": "geo", "fields": [{"name": "x", "type": "Unit"}]}
    unit = {"type": "fixed", "name": "Unit", "namespace": "geo", "size": 1}
    top = {
        "type": "record",
        "name": "Top",
        "fields": [{"name": "a", "type": ["null", "geo.Point"]}, {"name": "b", "type": "geo.Point"}],
    }
    fake.answers["/subjects/unit/versions/1"] = {"id": 1, "schema": json.dumps(unit)}
    fake.answers["/subjects/point/versions/2"] = {
        "id": 2,
        "schema": json.dumps(point),
        "references": [{"name": "geo.Unit", "subject": "unit", "version": 1}],
    }
    fake.answers["/schemas/ids/3"] = {
        "schema": json.dumps(top),
        "references": [{"name": "geo.Point", "subject": "point", "version": 2}],
    }
    text = client(fake).schema(3)
    assert writer_schema(text).read(b"\x02\x41\x42") == {"a": {"x": b"A"}, "b": {"x": b"B"}}


def test_another_kind_of_schema_is_refused(fake):
    fake.answers["/schemas/ids/5"] = {"schema": "{}", "schemaType": "JSON"}
    with pytest.raises(NotSupportedYetError, match="JSON"):
        client(fake).schema(5)


def reason_of(fake: FakeRegistry, ask: Callable[[SchemaRegistry], Any], **options: Any) -> str:
    with pytest.raises(RegistryUnavailableError) as caught:
        ask(client(fake, attempts=1, **options))
    return caught.value.reason


def by_id(registry: SchemaRegistry) -> Any:
    return registry.schema(5)


def referring(reference: Any) -> dict[str, Any]:
    return {"schema": '"A"', "references": [reference]}


VERSION = {"subject": "s", "version": 1, "id": 5, "schema": '"int"'}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"[" * 100_000, "an answer that is not JSON"),
        (b"\xff\xfe", "an answer that is not JSON"),
        (b"1" * 5_000, "an answer that is not JSON"),
        ([], "an answer without a schema"),
        ({"schema": 7}, "an answer without a schema"),
        ({"schema": '"\ud800"'}, "an answer without a schema"),
        (referring(7), "a reference without subject and version"),
        (referring({"subject": "a"}), "a reference without subject and version"),
        (referring({"subject": 1, "version": 1}), "a reference without subject and version"),
        (referring({"subject": "a", "version": 1}), "404 for the referenced subject a"),
    ],
)
def test_an_answer_that_is_no_schema_is_unavailable_with_the_reason(fake, answer, reason):
    fake.answers["/schemas/ids/5"] = answer

    assert reason_of(fake, by_id) == reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"a": 1}, "something that is not a list"),
        ([1, "2"], "versions that are not numbers"),
        ([1, None], "versions that are not numbers"),
        ([-1], "versions that are not numbers"),
        (list(range(1, 5_002)), "5001 versions of s"),
    ],
)
def test_versions_that_are_none_are_unavailable(fake, answer, reason):
    fake.answers["/subjects/s/versions"] = answer

    assert reason_of(fake, lambda registry: registry.versions("s")) == reason


@pytest.mark.parametrize(
    "change", [{"id": "5"}, {"id": -1}, {"id": 2**31}, {"version": None}, {"subject": None}]
)
def test_a_version_of_another_form_is_unavailable(fake, change):
    fake.answers["/subjects/s/versions/latest"] = VERSION | change

    assert (
        reason_of(fake, lambda registry: registry.latest("s")) == "a version without subject, number and id"
    )


def test_a_list_of_something_else_has_no_version_of_the_topic(fake):
    fake.answers[f"{LIST}0"] = [None, 7, "x", [], {"subject": ["t-value"]}]

    assert client(fake).listed("t") == []


def test_an_answer_has_a_largest_size_also_when_it_is_packed(fake):
    fake.answers["/schemas/ids/5"] = gzip.compress(b'{"schema": "' + b"x" * 40_000_000 + b'"}')
    fake.encodings["/schemas/ids/5"] = "gzip"

    assert reason_of(fake, by_id) == "an answer of more than 33554432 bytes"


def test_an_answer_that_is_packed_twice_is_not_unpacked(fake):
    fake.answers["/schemas/ids/5"] = gzip.compress(gzip.compress(b'{"schema": "x"}'))
    fake.encodings["/schemas/ids/5"] = "gzip, gzip"

    assert reason_of(fake, by_id) == "an answer in an encoding that was not asked for"


def test_an_answer_that_is_packed_is_read(fake):
    fake.answers["/schemas/ids/5"] = gzip.compress(b'{"schema": "x"}')
    fake.encodings["/schemas/ids/5"] = "gzip"

    assert client(fake).schema(5) == "x"


def test_an_answer_that_never_ends_is_waited_for_so_long_and_no_longer(fake):
    fake.hangs = True

    assert reason_of(fake, by_id, answer_seconds=0.1) == "an answer that took longer than 0.1 seconds"


def test_a_list_without_end_is_turned_a_hundred_times(fake, monkeypatch):
    monkeypatch.setattr("cdc_lakehouse.registry.client._PAGE", 1)
    fake.answers |= {
        f"/schemas?subjectPrefix=t-&deleted=true&limit=1&offset={offset}": [{"subject": f"t-{offset}"}]
        for offset in range(101)
    }

    assert reason_of(fake, lambda registry: registry.listed("t")) == "more than 100 pages of schemas"
    assert len(fake.calls) == 100


def test_a_list_that_is_too_long_is_asked_for_version_by_version(fake):
    fake.answers[f"{LIST}0"] = b" " * 34_000_000

    assert client(fake).listed("t") is None


def refer(fake: FakeRegistry, name: str, *others: str) -> dict[str, Any]:
    """The record `name`, with a field of each of the others, as version 1 of a subject of its name."""
    fields = [{"name": f"f{place}", "type": ["null", other]} for place, other in enumerate(others)]
    text = json.dumps({"type": "record", "name": name, "fields": [{"name": "id", "type": "int"}, *fields]})
    references = [{"name": other, "subject": other, "version": 1} for other in others]
    document = {"subject": name, "version": 1, "id": 9, "schema": text, "references": references}
    fake.answers[f"/subjects/{name}/versions/1"] = document
    return document


def test_a_reference_is_resolved_once_whoever_has_it(fake):
    """Written in once too: a type that is defined twice is no schema."""
    refer(fake, "D")
    refer(fake, "B", "D")
    refer(fake, "C", "D")
    fake.answers["/schemas/ids/5"] = refer(fake, "A", "B", "C")

    text = client(fake).schema(5)

    assert text is not None
    assert {*writer_schema(text).types.named} == {"A", "B", "C", "D"}
    assert sorted(fake.calls) == ["/schemas/ids/5", *(f"/subjects/{name}/versions/1" for name in "BCD")]


def test_references_in_a_circle_come_to_an_end(fake):
    refer(fake, "B", "A")
    fake.answers["/schemas/ids/5"] = refer(fake, "A", "B")

    assert client(fake).schema(5) is not None
    assert len(fake.calls) == 3


def test_a_schema_has_a_hundred_references_at_most(fake):
    for place in range(101):
        refer(fake, f"R{place}", f"R{place + 1}")
    fake.answers["/schemas/ids/5"] = refer(fake, "A", "R0")

    assert reason_of(fake, by_id) == "a schema with more than 100 references"


@pytest.mark.parametrize("text", ["{", '{"type": "record"}', '[{"type": "enum", "name": 7}]'])
def test_a_reference_that_is_no_schema_is_unavailable(fake, text):
    refer(fake, "B")
    fake.answers["/subjects/B/versions/1"]["schema"] = text
    fake.answers["/schemas/ids/5"] = refer(fake, "A", "B")

    assert reason_of(fake, by_id) == "references that are not Avro schemas"
