"""Which registered schemas belong to a topic: a record that names another one is refused alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

import pytest
from registry_server import FakeRegistry  # type: ignore[import-not-found]
from test_writer_schemas import go_away, record, run_of, serve  # type: ignore[import-not-found]

from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.errors import RegistryUnavailableError
from cdc_lakehouse.lake.schema_archive import SchemaArchive
from cdc_lakehouse.registry.versions import TopicVersions, record_name
from cdc_lakehouse.registry.writer_schemas import MetSchemas

KEY, VALUE = record("shop.t.Key"), record("shop.t.Envelope")
OTHER_KEY, OTHER_VALUE = record("shop.other.Key"), record("shop.other.Envelope")
GUID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")
NOTHING: frozenset[int] = frozenset()


@pytest.fixture
def fake():
    registry = FakeRegistry()
    yield registry
    registry.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "schemas"


@pytest.fixture
def served(fake: FakeRegistry) -> FakeRegistry:
    """Topic `t` and schemas of another one, known by their ids."""
    serve(fake, keys=[(1, KEY)], values=[(2, VALUE)])
    fake.answers["/schemas/ids/7"] = {"schema": OTHER_KEY}
    fake.answers["/schemas/ids/8"] = {"schema": OTHER_VALUE}
    return fake


def met(
    fake: FakeRegistry, folder: Path, *, keys: Iterable[SchemaRef] = (), values: Iterable[SchemaRef] = ()
) -> MetSchemas:
    writers, _ = run_of(fake, folder)
    writers.of_topic("t")
    found: MetSchemas = writers.of_records(["t"], keys=frozenset(keys), values=frozenset(values))
    return found


def classified(
    *,
    keys: Mapping[SchemaRef, str] | None = None,
    values: Mapping[SchemaRef, str] | None = None,
    strange_keys: Iterable[SchemaRef] = (),
    strange_values: Iterable[SchemaRef] = (),
) -> MetSchemas:
    return MetSchemas(keys or {}, values or {}, frozenset(strange_keys), frozenset(strange_values))


def test_schemas_of_another_topic_are_strange(served, folder):
    assert met(served, folder, keys=[7], values=[8]) == classified(strange_keys=[7], strange_values=[8])


def test_the_key_of_a_topic_is_strange_as_its_value_and_the_other_way_round(served, folder):
    found = met(served, folder, keys=[1, 2], values=[1, 2])

    assert found == classified(keys={1: KEY}, values={2: VALUE}, strange_keys=[2], strange_values=[1])


def test_a_schema_that_is_no_avro_is_strange(served, folder):
    served.answers["/schemas/ids/8"] = {"schema": "message M {}", "schemaType": "PROTOBUF"}

    assert met(served, folder, values=[8]).strange_values == {8}


def test_a_version_that_came_while_the_run_goes_on_belongs_without_a_further_call(served, folder):
    wider = record("shop.t.Envelope", "more")
    served.answers["/schemas/ids/20"] = {"schema": wider}
    writers, registry = run_of(served, folder)
    writers.of_topic("t")
    before = registry.calls

    assert writers.of_records(["t"], keys=NOTHING, values=frozenset({20})).values == {20: wider}
    assert registry.calls - before == 1


def test_a_version_of_another_record_name_belongs_if_the_subject_has_it(served, folder):
    """Tables whose topics a transform made one have schemas of several names in one subject."""
    writers, _ = run_of(served, folder)
    writers.of_topic("t")
    serve(served, keys=[(1, KEY)], values=[(2, VALUE), (8, OTHER_VALUE)])

    assert writers.of_records(["t"], keys=NOTHING, values=frozenset({8})).values == {8: OTHER_VALUE}


def test_a_subject_of_topic_and_record_name_is_one_of_the_topics(served, folder):
    subject = {"subject": "t-shop.other.Envelope", "version": 1, "id": 8, "schema": OTHER_VALUE}
    served.answers["/subjects/t-shop.other.Envelope/versions"] = [1]
    served.answers["/subjects/t-shop.other.Envelope/versions/1"] = subject

    assert met(served, folder, values=[8]).values == {8: OTHER_VALUE}


def test_the_first_key_of_a_topic_belongs_by_the_name_of_its_events(fake, folder):
    serve(fake, keys=[], values=[(2, VALUE)])
    fake.answers["/schemas/ids/1"] = {"schema": KEY}
    fake.answers["/schemas/ids/7"] = {"schema": OTHER_KEY}

    assert met(fake, folder, keys=[1, 7]) == classified(keys={1: KEY}, strange_keys=[7])


def test_a_guid_belongs_by_the_name_of_its_record(served, folder):
    other = UUID(int=GUID.int + 1)
    served.answers[f"/schemas/guids/{GUID}"] = {"schema": VALUE}
    served.answers[f"/schemas/guids/{other}"] = {"schema": OTHER_VALUE}

    found = met(served, folder, values=[GUID, other])

    assert found == classified(values={GUID: VALUE}, strange_values=[other])


def test_names_that_every_unnamed_record_has_tell_nothing(fake, folder):
    unnamed = record("io.confluent.connect.avro.ConnectDefault")
    serve(fake, keys=[(1, unnamed)], values=[(2, VALUE)])
    fake.answers["/schemas/ids/7"] = {"schema": record("io.confluent.connect.avro.ConnectDefault", "more")}

    assert met(fake, folder, keys=[7]).strange_keys == {7}


def test_with_the_registry_away_a_strange_schema_waits_and_one_of_the_topic_does_not(served, folder):
    archive = SchemaArchive(folder.as_uri())
    run_of(served, folder)[0].of_topic("t")
    for ref, text in ((8, OTHER_VALUE), (20, record("shop.t.Envelope", "more"))):
        archive.keep(ref, text, subjects=())
    go_away(served)
    writers, _ = run_of(served, folder)

    assert writers.of_records(["t"], keys=NOTHING, values=frozenset({2, 20})).values.keys() == {2, 20}
    with pytest.raises(RegistryUnavailableError):
        writers.of_records(["t"], keys=NOTHING, values=frozenset({8}))


def test_what_an_earlier_release_remembered_of_a_stray_does_not_count(served, folder):
    run_of(served, folder)[0].of_topic("t")
    archive = SchemaArchive(folder.as_uri())
    archive.keep(8, OTHER_VALUE, subjects=())
    archive.keep_topic("t", TopicVersions(keys={1: 1}, values={8: None, 2: 1}))

    assert dict(run_of(served, folder)[0].of_topic("t").values) == {2: VALUE}


def test_a_stray_is_not_remembered_as_a_schema_of_the_topic(served, folder):
    met(served, folder, values=[8])

    assert SchemaArchive(folder.as_uri()).topic("t").values == {2: 1}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"type": "record", "name": "E", "namespace": "a.b", "fields": []}', "a.b.E"),
        ('{"type": "record", "name": "c.E", "namespace": "a.b", "fields": []}', "c.E"),
        ('{"type": {"type": "record", "name": "E", "fields": []}}', "E"),
        ('"string"', None),
        ("[" * 100_000, None),
        ("no schema", None),
        ('{"name": 1}', None),
    ],
)
def test_the_name_of_a_record_is_its_full_name(text, name):
    assert record_name(text) == name
