"""Who wins a version of a table on a local disk: the file system says, in one step."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

WRITERS, VERSIONS = 8, 40


class LogStore:
    """The class that Delta calls, without Delta's own lock around it."""

    def __init__(self, spark, folder: Path) -> None:
        self._java: Any = spark.sparkContext._jvm
        self._conf = spark.sparkContext._jsc.hadoopConfiguration()
        self._store = self._java.cdclakehouse.ExclusiveLinkLogStore(self._conf)
        self._folder = folder

    def write(self, name: str, line: str, *, overwrite: bool = False) -> bool:
        """False when there is such a file."""
        path = self._java.org.apache.hadoop.fs.Path(f"{self._folder.as_uri()}/{name}")
        actions = self._java.java.util.Collections.singletonList(line).iterator()
        try:
            self._store.write(path, actions, overwrite, self._conf)
        except Py4JJavaError as problem:
            if problem.java_exception.getClass().getName() != "java.nio.file.FileAlreadyExistsException":
                raise
            return False
        return True


@pytest.fixture
def store(spark, tmp_path) -> LogStore:
    return LogStore(spark, tmp_path)


def test_of_many_writers_of_one_version_exactly_one_wins(store, tmp_path):
    def race(writer: int) -> list[tuple[int, int]]:
        return [(n, writer) for n in range(VERSIONS) if store.write(f"{n}.json", f"{n} {writer}")]

    with ThreadPoolExecutor(WRITERS) as pool:
        won = [each for found in pool.map(race, range(WRITERS)) for each in found]

    assert Counter(version for version, _ in won) == dict.fromkeys(range(VERSIONS), 1)
    assert {(tmp_path / f"{n}.json").read_text() for n in range(VERSIONS)} == {f"{n} {w}\n" for n, w in won}


def test_nothing_but_the_versions_is_left(store, tmp_path):
    store.write("0.json", "first")
    store.write("0.json", "second")

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0.json": "first\n"}


def test_a_writer_that_meets_its_own_file_has_won(store):
    """As after a lost answer: the same content cannot be another commit's, which has another transaction."""
    assert store.write("0.json", "mine")
    assert store.write("0.json", "mine")


def test_a_checksum_that_a_deleted_version_left_behind_spoils_nothing(spark, tmp_path):
    table = (tmp_path / "table").as_uri()
    spark.range(3).write.format("delta").save(table)
    left = tmp_path / "table" / "_delta_log" / ".00000000000000000001.json.crc"
    left.write_bytes(b"crc\0\0\0\2\0\1\2\3\4")

    spark.range(2).write.format("delta").mode("append").save(table)

    assert not left.exists()
    assert spark.read.format("delta").load(table).count() == 5


def test_the_session_commits_through_it(spark, tmp_path):
    """Hadoop's own way leaves a checksum beside each version, a link does not."""
    spark.range(1).write.format("delta").save(tmp_path.as_uri())

    names = {path.name for path in (tmp_path / "_delta_log").iterdir()}
    assert "00000000000000000000.json" in names
    assert ".00000000000000000000.json.crc" not in names


def added(name: str, size: int) -> str:
    return json.dumps({"add": {"path": name, "size": size, "partitionValues": {}, "dataChange": True}})


@pytest.mark.parametrize(("name", "size"), [("rows.parquet", 5), ("gone.parquet", 4)], ids=["cut", "gone"])
def test_a_commit_that_names_a_file_that_is_not_there_is_refused(store, tmp_path, name, size):
    (tmp_path.parent / "rows.parquet").write_text("rows")

    with pytest.raises(Py4JJavaError) as caught:
        store.write("0.json", added(name, size))

    assert "java.io.IOException" in str(caught.value) or "NoSuchFileException" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_data_commit_and_folders_are_on_the_disk_before_a_commit_counts(spark, tmp_path):
    """The kernel is asked: a file that was not synced may be gone after a loss of power."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    trace = tmp_path / "trace"
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    command = [strace, "-f", "-y", "-e", "trace=fsync,fdatasync,link,linkat", "-o", str(trace)]
    with subprocess.Popen([*command, "-p", str(java)], stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        tracer.stderr.readline()  # it says that it has attached
        spark.range(3).write.format("delta").save((tmp_path / "table").as_uri())
        tracer.terminate()

    lines = trace.read_text().splitlines()
    (link,) = [place for place, line in enumerate(lines) if "link" in line and "00.json" in line]
    before, behind = ["\n".join(part) for part in (lines[:link], lines[link:])]
    assert ".snappy.parquet>)" in before
    assert "/table>)" in before
    assert ".tmp>)" in before
    assert "/table/_delta_log>)" in behind
    assert f"<{tmp_path}>)" in behind
