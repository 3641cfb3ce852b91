"""The jar of `include/log_store`: built byte by byte the same from its sources, and committed.

A machine that only runs the project needs no compiler; a test builds it again where there is one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from artifacts.cache import cache_root, fetched_folder
from artifacts.errors import ArtifactsError
from artifacts.ivy import pyspark_jars
from artifacts.java import MAJOR

FOLDER = Path(__file__).parents[1] / "log_store"
SOURCES = FOLDER / "java"
COMMITTED = FOLDER / "log-store.jar"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_SECONDS = 120


class CompilerError(ArtifactsError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"the log store cannot be built: {reason}; it takes the javac of a JDK {MAJOR}")


def installed_log_store() -> Path:
    """The committed jar, in the cache: the class archive demands one path for all clones."""
    content = COMMITTED.read_bytes()
    target = cache_root() / "log-store" / f"{hashlib.sha256(content).hexdigest()[:12]}" / COMMITTED.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f".{target.name}.{os.getpid()}")
        scratch.write_bytes(content)
        os.utime(scratch, (0, 0))  # the archive compares it, and two processes may come here at once
        scratch.replace(target)
    return target


def compiler_version() -> str | None:
    """Like `javac 17.0.15`; None without one of the right major version."""
    javac = shutil.which("javac")
    if javac is None:
        return None
    answer = subprocess.run(
        [javac, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    version = (answer.stdout or answer.stderr).strip()
    return version if re.match(rf"javac {MAJOR}\b", version) else None


def sources_digest() -> str:
    """Of all sources with their names."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.java")):
        digest.update(
            f"{path.relative_to(SOURCES)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return digest.hexdigest()


def manifest_of(jar: Path) -> dict[str, str]:
    with zipfile.ZipFile(jar) as opened:
        lines = opened.read("META-INF/MANIFEST.MF").decode().splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def build_log_store(target: Path = COMMITTED) -> Path:
    """Compile and pack; a second call with the same compiler writes the same bytes."""
    version = compiler_version()
    if version is None:
        raise CompilerError("none was found on PATH")
    with tempfile.TemporaryDirectory(prefix="log-store-") as name:
        classes = Path(name)
        _compile(classes)
        entries = [(str(path.relative_to(classes)), path.read_bytes()) for path in classes.rglob("*.class")]
    lines = ["Manifest-Version: 1.0", f"Compiler: {version}", f"Sources: {sources_digest()}", "", ""]
    manifest = ("META-INF/MANIFEST.MF", "\n".join(lines).encode())
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    _pack(scratch, [manifest, *sorted(entries)])
    scratch.replace(target)
    return target


def _compile(classes: Path) -> None:
    folders = (fetched_folder("spark"), fetched_folder("spark-s3"), pyspark_jars())
    class_path = ":".join(f"{folder}/*" for folder in folders)
    sources = sorted(map(str, SOURCES.rglob("*.java")))
    # Without lint: the classes of others that ours extend carry annotations of yet others.
    command = ["javac", "--release", str(MAJOR), "-Xlint:none", "-encoding", "UTF-8", "-proc:none"]
    answer = subprocess.run(
        [*command, "-cp", class_path, "-d", str(classes), *sources],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if answer.returncode != 0:
        raise CompilerError(answer.stderr.strip())


def _pack(target: Path, entries: Sequence[tuple[str, bytes]]) -> None:
    """Stored, not deflated: another zlib would give other bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as jar:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            jar.writestr(entry, content)
