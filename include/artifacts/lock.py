"""The rows of `artifacts.lock`: what every jar and archive is called, how large it is, what it hashes to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from artifacts.errors import LockFileError, UnknownGroupError

LOCK_FILE = Path(__file__).with_name("artifacts.lock")
DEFAULT_GROUPS = ("kafka", "debezium", "registry", "converter", "spark")


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a Maven repository; `size` in bytes."""

    group: str
    organisation: str
    name: str
    version: str
    extension: str
    classifier: str | None
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{suffix}.{self.extension}"


@dataclass(frozen=True, slots=True)
class Group:
    """Files that belong together; they lie in one folder of the cache and nothing else does."""

    name: str
    artifacts: tuple[Artifact, ...]

    @property
    def size(self) -> int:
        return sum(artifact.size for artifact in self.artifacts)

    @property
    def folder_name(self) -> str:
        """Named by content: another lock gets another folder, so clones of two versions share a cache."""
        rows = "\n".join(sorted(f"{artifact.file_name} {artifact.sha256}" for artifact in self.artifacts))
        return f"{self.name}-{hashlib.sha256(rows.encode()).hexdigest()[:12]}"


def read_lock(path: Path = LOCK_FILE) -> dict[str, Group]:
    """Group name -> group, in the order of the file."""
    return parse_lock(path.read_text(encoding="utf-8").splitlines())


def parse_lock(lines: Iterable[str]) -> dict[str, Group]:
    rows: dict[str, list[Artifact]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            artifact = _artifact_of(line, number)
            rows.setdefault(artifact.group, []).append(artifact)
    return {name: Group(name, tuple(artifacts)) for name, artifacts in rows.items()}


def select_groups(lock: dict[str, Group], names: Iterable[str]) -> tuple[Group, ...]:
    chosen = []
    for name in dict.fromkeys(names):
        if name not in lock:
            raise UnknownGroupError(name, tuple(lock))
        chosen.append(lock[name])
    return tuple(chosen)


def _artifact_of(line: str, number: int) -> Artifact:
    fields = line.split()
    if len(fields) != 8:
        raise LockFileError(number, f"{len(fields)} fields where 8 are expected")
    group, organisation, name, version, extension, classifier_or_dash, size, sha256 = fields
    if not size.isdigit() or len(sha256) != 64:
        raise LockFileError(number, "the last two fields are not a size and a sha256")
    classifier = None if classifier_or_dash == "-" else classifier_or_dash
    return Artifact(group, organisation, name, version, extension, classifier, int(size), sha256)
