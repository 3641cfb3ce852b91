"""The folder that all clones of a user share: where files lie, whether they are whole, who may write."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from artifacts.errors import NotFetchedError
from artifacts.lock import Artifact, Group, read_lock

ENV_CACHE = "CDC_LAKEHOUSE_CACHE"


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    if environment.get(ENV_CACHE):
        return Path(environment[ENV_CACHE]).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "cdc_lakehouse"


def group_folder(group: Group) -> Path:
    return cache_root() / "artifacts" / group.folder_name


def fetched_folder(name: str) -> Path:
    """The folder of a fetched group; a cheap look at names and sizes, the hashes were checked on arrival."""
    group = read_lock()[name]
    folder = group_folder(group)
    if any(not has_right_size(folder / artifact.file_name, artifact) for artifact in group.artifacts):
        raise NotFetchedError(name)
    return folder


def has_right_size(path: Path, artifact: Artifact) -> bool:
    try:
        return path.stat().st_size == artifact.size
    except FileNotFoundError:
        return False


def is_whole(path: Path, artifact: Artifact) -> bool:
    """Reads the whole file."""
    if not has_right_size(path, artifact):
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == artifact.sha256


def broken_artifacts(group: Group) -> tuple[Artifact, ...]:
    """Those that are missing or whose bytes are not the expected ones."""
    folder = group_folder(group)
    return tuple(
        artifact for artifact in group.artifacts if not is_whole(folder / artifact.file_name, artifact)
    )


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """One process at a time per name, over all clones; the kernel frees it when the process dies."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{name}.lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another process is at work on {name} in {root}; waiting for it", flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
