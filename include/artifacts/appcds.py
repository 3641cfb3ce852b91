"""An archive of loaded classes that halves the start of Spark: built once per set of jars and Java."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from artifacts.cache import cache_root, exclusive
from artifacts.errors import ArtifactsError
from artifacts.ivy import pyspark_jars
from artifacts.java import Java, find_java
from artifacts.spark_files import (
    DEFAULTS_FILE,
    LOGGING_FILE,
    driver_flags,
    render_defaults,
    render_logging,
    spark_class_path,
    spark_settings,
)

_EXERCISE = Path(__file__).with_name("appcds_exercise.py")
_BUILD_SECONDS = 300


class ArchiveError(ArtifactsError):
    """Spark runs without it as well, only slower."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the class archive could not be built: {reason}; Spark will start without it")


def archived_class_path() -> tuple[Path, ...]:
    """Our jars, then Spark's own, one by one: the archive demands the same files in the same order.

    Spark puts SPARK_CONF_DIR between the two, and no class may come from behind a folder that has files.
    Naming Spark's jars before it costs nothing, it finds each class at its first place.
    """
    return (*spark_class_path(), *sorted(pyspark_jars().glob("*.jar")))


def archive_key(jars: Iterable[tuple[str, int, int]], *, java_version: str, collector: str) -> str:
    """Jars are path, size and time of change, which is what the JVM compares."""
    lines = [f"{path} {size} {changed}" for path, size, changed in jars]
    text = "\n".join([*lines, java_version, collector])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def archive_path(java: Java) -> Path:
    jars = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in archived_class_path()]
    key = archive_key(jars, java_version=f"{java.home} {java.version}", collector="serial")
    return cache_root() / "appcds" / f"{key}.jsa"


def existing_archive() -> Path | None:
    try:
        path = archive_path(find_java())
    except ArtifactsError:
        return None
    return path if path.exists() else None


def build_archive() -> Path:
    """Run a small job and keep what it loaded; the second call finds the archive and does nothing."""
    java = find_java()
    with exclusive("appcds"):
        target = archive_path(java)
        if target.exists():
            return target
        target.parent.mkdir(exist_ok=True)
        _forget_removed_installations(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as name:
            _exercise(Path(name), java)
            built = Path(name) / "new.jsa"
            target.with_suffix(".json").write_text(json.dumps({"jars": str(pyspark_jars())}) + "\n")
            built.rename(target)
    return target


def _exercise(scratch: Path, java: Java) -> None:
    logging_file = scratch / LOGGING_FILE
    logging_file.write_text(render_logging())
    settings = spark_settings(
        driver_class_path=archived_class_path(),
        executor_class_path=spark_class_path(),
        flags=[
            *driver_flags(logging_file=logging_file, archive=None),
            f"-XX:ArchiveClassesAtExit={scratch / 'new.jsa'}",
        ],
        warehouse=scratch / "warehouse",
    )
    (scratch / DEFAULTS_FILE).write_text(render_defaults(settings))
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ},
        "JAVA_HOME": str(java.home),
        "SPARK_CONF_DIR": str(scratch),
        "PYSPARK_PYTHON": sys.executable,
    }
    submit = pyspark_jars().parent / "bin" / "spark-submit"
    try:
        answer = subprocess.run(
            [str(submit), str(_EXERCISE), str(scratch)],
            env=environment,
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=_BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise ArchiveError(f"it took longer than {_BUILD_SECONDS} s") from problem
    if answer.returncode != 0 or not (scratch / "new.jsa").exists():
        lines = [line for line in answer.stderr.splitlines() if line.strip()] or [
            "Spark ended without a word"
        ]
        raise ArchiveError(lines[-1].strip())


def _forget_removed_installations(folder: Path) -> None:
    """An archive serves one venv; it is large, so it goes when the venv is gone."""
    for description in folder.glob("*.json"):
        if not Path(json.loads(description.read_text())["jars"]).is_dir():
            description.with_suffix(".jsa").unlink(missing_ok=True)
            description.unlink()
