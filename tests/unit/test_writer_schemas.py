"""Schemas of a table: a real HTTP server as the registry, a real folder as the archive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from registry_server import FakeRegistry  # type: ignore[import-not-found]

from cdc_lakehouse.config.rest_settings import RestSettings
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors import RegistryUnavailableError, SchemaConflictError
from cdc_lakehouse.lake.schema_archive import SchemaArchive
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.registry.writer_schemas import MetSchemas, Source, WriterSchemas

KEY, ONE, TWO, THREE = '"string"', '"int"', '"long"', '"double"'
GUID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")
NOTHING: frozenset[int] = frozenset()


def record(name: str, *columns: str) -> str:
    fields = [{"name": column, "type": "int"} for column in ("id", *columns)]
    return json.dumps({"type": "record", "name": name, "fields": fields})


@pytest.fixture
def fake():
    registry = FakeRegistry()
    yield registry
    registry.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "schemas"


def run_of(fake: FakeRegistry, folder: Path) -> tuple[WriterSchemas, SchemaRegistry]:
    """As a new process begins."""
    registry = SchemaRegistry(fake.url, first_wait_seconds=0.001, timeout_seconds=2)
    return WriterSchemas(registry, SchemaArchive(folder.as_uri()), table="orders"), registry


def serve(fake: FakeRegistry, *, keys: Sequence[tuple[int, str]], values: Sequence[tuple[int, str]]) -> None:
    """Topic `t`, as Apicurio answers: without `/schemas`."""
    fake.answers.clear()
    for subject, texts in (("t-key", keys), ("t-value", values)):
        path = f"/subjects/{subject}/versions"
        fake.answers[path] = list(range(1, len(texts) + 1))
        for number, (ref, text) in enumerate(texts, 1):
            document = {"subject": subject, "version": number, "id": ref, "schema": text}
            fake.answers[f"{path}/{number}"] = fake.answers[f"{path}/latest"] = document
            fake.answers[f"/schemas/ids/{ref}"] = {"schema": text}


def go_away(fake: FakeRegistry) -> None:
    fake.failures = [503] * 100


@pytest.fixture
def archived(fake: FakeRegistry, folder: Path) -> FakeRegistry:
    """A run has met the topic with two versions."""
    serve(fake, keys=[(1, KEY)], values=[(2, ONE), (3, TWO)])
    run_of(fake, folder)[0].of_topic("t")
    fake.calls.clear()
    return fake


def test_the_first_run_reads_all_versions_and_archives_them(fake, folder):
    serve(fake, keys=[(1, KEY)], values=[(2, ONE), (3, TWO)])

    found = run_of(fake, folder)[0].of_topic("t")

    assert (list(found.keys.items()), list(found.values.items())) == ([(1, KEY)], [(2, ONE), (3, TWO)])
    assert sorted(path.name for path in folder.glob("*.json")) == ["1.json", "2.json", "3.json"]
    document = json.loads((folder / "3.json").read_text())
    assert (document["id"], document["schema"], document["subjects"]) == (3, TWO, ["t-value/2"])
    assert document["first_seen"].endswith("+00:00")


def test_a_registry_that_lists_is_called_once_in_the_first_run_too(fake, folder):
    fake.answers["/schemas?subjectPrefix=t-&deleted=true&limit=1000&offset=0"] = [
        {"subject": "t-value", "version": 1, "id": 2, "schema": ONE},
        {"subject": "t-key", "version": 1, "id": 1, "schema": KEY},
    ]
    writers, registry = run_of(fake, folder)

    assert dict(writers.of_topic("t").values) == {2: ONE}
    assert registry.calls == 1


def test_a_run_without_news_makes_one_call(archived, folder):
    writers, registry = run_of(archived, folder)

    found = writers.of_topic("t")

    assert (dict(found.keys), dict(found.values)) == ({1: KEY}, {2: ONE, 3: TWO})
    assert archived.calls == ["/subjects/t-value/versions/latest"]
    assert (registry.calls, writers.source) == (1, Source.REGISTRY)


def test_a_new_version_is_found_before_the_batch(archived, folder):
    serve(archived, keys=[(1, KEY)], values=[(2, ONE), (3, TWO), (9, THREE)])
    writers, _ = run_of(archived, folder)

    assert list(writers.of_topic("t").values.items()) == [(2, ONE), (3, TWO), (9, THREE)]
    assert archived.calls == ["/subjects/t-value/versions/latest", "/subjects/t-key/versions/latest"]


def test_several_new_versions_are_found_before_the_batch(archived, folder):
    serve(archived, keys=[(1, KEY)], values=[(2, ONE), (3, TWO), (9, THREE), (10, KEY)])

    found = run_of(archived, folder)[0].of_topic("t")

    assert list(found.values.items()) == [(2, ONE), (3, TWO), (9, THREE), (10, KEY)]


def test_with_the_registry_away_an_archived_topic_goes_on(archived, folder):
    go_away(archived)
    writers, _ = run_of(archived, folder)

    found = writers.of_topic("t")

    assert (dict(found.keys), dict(found.values)) == ({1: KEY}, {2: ONE, 3: TWO})
    assert writers.source is Source.ARCHIVE


def test_with_the_registry_away_a_new_topic_waits(archived, folder):
    go_away(archived)

    with pytest.raises(RegistryUnavailableError):
        run_of(archived, folder)[0].of_topic("u")


def test_with_the_registry_away_a_new_schema_waits_and_an_old_one_does_not(archived, folder):
    go_away(archived)
    writers, _ = run_of(archived, folder)

    assert writers.of_records(["t"], keys=NOTHING, values=frozenset({3})).values == {3: TWO}
    assert writers.source is Source.ARCHIVE
    with pytest.raises(RegistryUnavailableError):
        writers.of_records(["t"], keys=NOTHING, values=frozenset({9}))


def test_a_registry_that_forgot_a_topic_is_replaced_by_the_archive(archived, folder):
    archived.answers.clear()
    writers, _ = run_of(archived, folder)

    assert dict(writers.of_topic("t").values) == {2: ONE, 3: TWO}
    assert writers.of_records(["t"], keys=frozenset({1}), values=NOTHING).keys == {1: KEY}
    assert writers.source is Source.ARCHIVE


def test_schemas_of_records_are_known_from_the_start_of_the_next_run(fake, folder):
    serve(fake, keys=[(1, record("shop.t.Key"))], values=[(2, record("shop.t.Envelope"))])
    wider, by_guid = record("shop.t.Envelope", "more"), record("shop.t.Key", "more")
    fake.answers["/schemas/ids/20"] = {"schema": wider}
    fake.answers[f"/schemas/guids/{GUID}"] = {"schema": by_guid}
    writers, _ = run_of(fake, folder)
    writers.of_topic("t")
    writers.of_records(["t"], keys=frozenset({GUID}), values=frozenset({20, 21}))

    go_away(fake)
    found = run_of(fake, folder)[0].of_topic("t")

    assert (list(found.keys), list(found.values)) == ([GUID, 1], [20, 2])
    assert (found.keys[GUID], found.values[20]) == (by_guid, wider)
    assert (folder / f"{GUID}.json").exists()


def test_an_id_that_nobody_knows_is_not_found(archived, folder):
    found = run_of(archived, folder)[0].of_records(["t"], keys=NOTHING, values=frozenset({99}))

    assert found == MetSchemas({}, {}, NOTHING, NOTHING)


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ([(1, KEY)], [(2, THREE)]),
        ([(2, KEY)], [(11, ONE)]),
        ([(2, KEY)], [(8, ONE), (9, TWO), (10, THREE)]),
        ([(3, KEY)], [(10, ONE), (2, ONE)]),
    ],
)
def test_a_rebuilt_registry_stops_the_table(archived, folder, keys, values):
    """One of the ids 1, 2 and 3 was given away again, and was seen so before the batch."""
    before = {path: path.read_bytes() for path in folder.rglob("*.json")}
    serve(archived, keys=keys, values=values)
    writers, _ = run_of(archived, folder)

    with pytest.raises(SchemaConflictError) as caught:
        writers.of_topic("t")

    assert caught.value.exit_code is ExitCode.DATA
    assert caught.value.archived == f"{folder.as_uri()}/{caught.value.schema}.json"
    assert {path: path.read_bytes() for path in before} == before


def test_a_rebuilt_registry_with_its_own_generation_is_read_beside_the_old_archive(archived, tmp_path):
    """The way out of a conflict: the archive of each generation is a folder of its own."""
    old, new = (
        SchemaRegistry(RestSettings(archived.url, generation=each), timeout_seconds=2) for each in (None, "2")
    )
    lake = tmp_path / "lake"
    for registry, text in ((old, TWO), (new, THREE)):
        serve(archived, keys=[(1, KEY)], values=[(2, ONE), (3, text)])
        archive = SchemaArchive((lake / registry.name).as_uri())
        assert WriterSchemas(registry, archive, table="orders").of_topic("t").values[3] == text
    assert sorted(path.name for path in lake.iterdir()) == [old.name, f"{old.name}-2"]


def test_a_schema_of_a_record_that_differs_from_the_archive_stops_the_table(archived, folder):
    """Another topic's schema had the id: it is not taken from the archive unasked."""
    archived.answers["/schemas/ids/3"] = {"schema": THREE}

    with pytest.raises(SchemaConflictError) as caught:
        run_of(archived, folder)[0].of_records(["u"], keys=NOTHING, values=frozenset({3}))

    assert (caught.value.schema, caught.value.registry) == ("3", SchemaRegistry(archived.url).name)


def test_a_registry_that_prints_a_schema_anew_is_no_other_registry(archived, folder):
    serve(archived, keys=[(1, '{"type": "string"}')], values=[(2, ONE), (3, '{ "type":"long" }')])

    assert dict(run_of(archived, folder)[0].of_topic("t").values) == {2: ONE, 3: TWO}


def test_a_deleted_archive_is_filled_again(archived, folder):
    before = sorted(path.relative_to(folder) for path in folder.rglob("*.json"))
    for path in folder.rglob("*.json"):
        path.unlink()

    run_of(archived, folder)[0].of_topic("t")

    assert sorted(path.relative_to(folder) for path in folder.rglob("*.json")) == before


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"\xff\xfe", b"[]", b'{"v": 1, "id": 3, "schema": "\\"int\\""}']
)
@pytest.mark.parametrize("name", ["3.json", "topics/t.json"])
def test_a_broken_file_is_fetched_again_and_never_trusted(archived, folder, name, damage):
    path = folder / name
    sound = json.loads(path.read_text())
    path.write_bytes(damage)

    found = run_of(archived, folder)[0].of_topic("t")

    assert dict(found.values) == {2: ONE, 3: TWO}
    healed = json.loads(path.read_text())
    assert {**healed, "first_seen": 0, "sha256": 0} == {**sound, "first_seen": 0, "sha256": 0}


def test_a_text_that_was_changed_by_hand_is_never_trusted(archived, folder):
    path = folder / "3.json"
    path.write_text(path.read_text().replace("long", "float"))
    go_away(archived)
    writers, _ = run_of(archived, folder)

    assert dict(writers.of_topic("t").values) == {2: ONE}
    with pytest.raises(RegistryUnavailableError):
        writers.of_records(["t"], keys=NOTHING, values=frozenset({3}))


def test_a_file_under_the_name_of_another_schema_is_never_trusted(archived, folder):
    (folder / "7.json").write_bytes((folder / "3.json").read_bytes())

    assert SchemaArchive(folder.as_uri()).text(7) is None


def test_a_schema_is_unknown_since_the_first_run_that_missed_it(archived, folder):
    first, _ = run_of(archived, folder)
    first.of_topic("t")
    assert first.unknown_for({7}, timedelta(hours=1)) == NOTHING

    later, _ = run_of(archived, folder)
    later.of_topic("t")

    assert later.unknown_for({7, 8}, timedelta()) == {7, 8}
    assert later.unknown_for({7}, timedelta(hours=1)) == NOTHING


def test_nothing_is_surely_unknown_while_the_archive_vouches(archived, folder):
    run_of(archived, folder)[0].unknown_for({7}, timedelta())
    go_away(archived)
    writers, _ = run_of(archived, folder)
    writers.of_topic("t")

    assert writers.unknown_for({7}, timedelta()) == NOTHING


def test_runs_side_by_side_do_no_harm(fake, folder):
    serve(fake, keys=[(1, KEY)], values=[(number, ONE) for number in range(2, 12)])
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(lambda _: dict(run_of(fake, folder)[0].of_topic("t").values), range(16)))

    assert [each == found[0] for each in found] == [True] * 16
    go_away(fake)
    assert dict(run_of(fake, folder)[0].of_topic("t").values) == found[0]
    assert [path.name for path in folder.rglob("*.part")] == []


def test_an_archived_schema_is_written_once(archived, folder):
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.rglob("*.json")}

    run_of(archived, folder)[0].of_topic("t")

    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in before} == before


@pytest.mark.parametrize("topic", ["..", ".", "", "a/b", "x" * 250])
def test_a_name_that_no_topic_can_have_becomes_no_path(folder, topic):
    with pytest.raises(ValueError, match="cannot be the name of a topic"):
        SchemaArchive(folder.as_uri()).topic(topic)
