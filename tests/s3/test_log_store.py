"""Who wins a version of a table in a bucket: the bucket says, in one step. Delta's own store asks nobody."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from faulty_store import Fault  # type: ignore[import-not-found]
from py4j.protocol import Py4JJavaError

from artifacts.log_store import COMMITTED, build_log_store, compiler_version, manifest_of
from cdc_lakehouse.lake import files

WRITERS, VERSIONS = 8, 15
OURS, DELTAS = "cdclakehouse.ConditionalPutLogStore", "io.delta.storage.S3SingleDriverLogStore"


class LogStore:
    """The class that Delta calls, without Delta's own lock around it."""

    def __init__(self, session, folder: str, *, name: str = OURS) -> None:
        self._session = session
        self._java: Any = session.sparkContext._jvm
        self._conf = session.sparkContext._jsc.hadoopConfiguration()
        kind = self._java
        for part in name.split("."):
            kind = getattr(kind, part)
        self._store = kind(self._conf)
        self.folder = folder

    def write(self, name: str, line: str, *, meanwhile: Callable[[], object] | None = None) -> bool:
        """False when there is such an object; `meanwhile` happens when the writer has looked already."""
        path = self._java.org.apache.hadoop.fs.Path(f"{self.folder}/{name}")
        actions = self._java.java.util.Collections.singletonList(line).iterator()
        if meanwhile is not None:
            actions = _Interrupted(line, meanwhile)
        try:
            self._store.write(path, actions, False, self._conf)
        except Py4JJavaError as problem:
            if problem.java_exception.getClass().getName() != "java.nio.file.FileAlreadyExistsException":
                raise
            return False
        return True


class _Interrupted:
    """An iterator over the actions of a commit that does something else before it hands out the first."""

    def __init__(self, line: str, meanwhile: Callable[[], object]) -> None:
        self._left = [line]
        self._meanwhile = meanwhile

    def hasNext(self) -> bool:  # noqa: N802 - Java's name
        return bool(self._left)

    def next(self) -> str:
        self._meanwhile()
        return self._left.pop()

    class Java:
        implements = ("java.util.Iterator",)


@pytest.fixture
def session(engine):
    found = engine.session()
    gateway = found.sparkContext._gateway
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)
    return found


@pytest.fixture
def store(session, chain) -> LogStore:
    return LogStore(session, chain.root)


def test_of_many_writers_of_one_version_exactly_one_wins(store):
    def race(writer: int) -> list[tuple[int, int]]:
        return [(n, writer) for n in range(VERSIONS) if store.write(f"{n}.json", f"{n} {writer}")]

    with ThreadPoolExecutor(WRITERS) as pool:
        won = [each for found in pool.map(race, range(WRITERS)) for each in found]

    kept = {files.read_text(f"{store.folder}/{n}.json") for n in range(VERSIONS)}
    assert Counter(version for version, _ in won) == dict.fromkeys(range(VERSIONS), 1)
    assert kept == {f"{n} {w}\n" for n, w in won}


def test_a_commit_between_look_and_write_is_not_replaced(session, chain):
    ours = LogStore(session, chain.root)

    won = ours.write("0.json", "late", meanwhile=lambda: files.write_text(f"{chain.root}/0.json", "first"))

    assert (won, files.read_text(f"{chain.root}/0.json")) == (False, "first")


def test_deltas_own_store_loses_that_commit(session, chain):
    """The reason for ours: should this fail one day, ours may go."""
    deltas = LogStore(session, chain.root, name=DELTAS)

    won = deltas.write("0.json", "late", meanwhile=lambda: files.write_text(f"{chain.root}/0.json", "first"))

    assert (won, files.read_text(f"{chain.root}/0.json")) == (True, "late\n")


def test_a_writer_whose_answer_was_lost_has_won(store, faulty):
    """Its client tries again by itself and meets its own object."""

    with faulty.behaving(Fault(r"/0\.json$", lose_answers=1)) as seen:
        won = store.write("0.json", "mine")

    assert (won, seen.met) == (True, 2)
    assert not store.write("0.json", "another's")


def test_the_committed_jar_is_what_its_sources_make(stack, tmp_path):
    version = compiler_version()
    if version != manifest_of(COMMITTED)["Compiler"]:
        pytest.skip(f"{version} may make other bytes than {manifest_of(COMMITTED)['Compiler']}")
    shutil.copy(COMMITTED, tmp_path / "before.jar")

    rebuilt = build_log_store(tmp_path / "log-store.jar")

    assert rebuilt.read_bytes() == (tmp_path / "before.jar").read_bytes()
