"""Bring groups of the lock into the cache: download aside, check every hash, then move into place."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from artifacts.cache import broken_artifacts, cache_root, exclusive, group_folder, is_whole
from artifacts.errors import ChecksumError, DiskFullError
from artifacts.ivy import download
from artifacts.java import Java, find_java
from artifacts.lock import Artifact, Group

_AT_ONCE = 3
_SECONDS_BETWEEN_LINES = 5.0
_MEGABYTE = 1_000_000


def fetch(groups: Iterable[Group]) -> int:
    """Make every group whole and return how many files had to be brought; with none it needs no network."""
    wanted = tuple(groups)
    if not any(_disarray(group) for group in wanted):
        return 0
    java = find_java()
    with exclusive("artifacts"):
        missing = {group: broken_artifacts(group) for group in wanted}
        _remove_strangers(wanted)
        incomplete = {group: artifacts for group, artifacts in missing.items() if artifacts}
        try:
            if incomplete:
                _fetch_all(incomplete, java)
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(cache_root(), _needed_megabytes(incomplete)) from problem
            raise
    return sum(len(artifacts) for artifacts in incomplete.values())


def _disarray(group: Group) -> bool:
    return bool(broken_artifacts(group) or _strangers(group))


def _strangers(group: Group) -> list[Path]:
    """Files that do not belong: on a class path made of the whole folder they would take part."""
    folder = group_folder(group)
    names = {artifact.file_name for artifact in group.artifacts}
    return [path for path in folder.iterdir() if path.name not in names] if folder.is_dir() else []


def _remove_strangers(groups: Iterable[Group]) -> None:
    for group in groups:
        for path in _strangers(group):
            path.unlink()


def _needed_megabytes(missing: dict[Group, tuple[Artifact, ...]]) -> int:
    """Twice, because Ivy keeps a copy of its own until the files are in place."""
    return 2 * sum(artifact.size for artifacts in missing.values() for artifact in artifacts) // _MEGABYTE + 1


def _fetch_all(missing: dict[Group, tuple[Artifact, ...]], java: Java) -> None:
    root = cache_root()
    for abandoned in root.glob(".fetch-*"):  # of a process that was killed: we hold the lock
        shutil.rmtree(abandoned, ignore_errors=True)
    if shutil.disk_usage(root).free < _needed_megabytes(missing) * _MEGABYTE:
        raise DiskFullError(root, _needed_megabytes(missing))
    with tempfile.TemporaryDirectory(dir=root, prefix=".fetch-", ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        largest_first = sorted(missing, key=lambda group: -sum(artifact.size for artifact in missing[group]))
        cancel = threading.Event()
        with _Progress(scratch, missing) as progress, ThreadPoolExecutor(_AT_ONCE) as pool:
            running = {
                pool.submit(_fetch_group, g, missing[g], scratch / g.name, java, cancel): g
                for g in largest_first
            }
            try:
                for done in as_completed(running):
                    done.result()
                    progress.group_done(running[done])
            except BaseException:
                cancel.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _fetch_group(
    group: Group, artifacts: tuple[Artifact, ...], scratch: Path, java: Java, cancel: threading.Event
) -> None:
    """A second try for whatever arrived broken."""
    still = artifacts
    for attempt in ("first", "second"):
        files = download(still, scratch=scratch / attempt, java=java, cancel=cancel)
        still = _move_whole(group, still, files)
        if not still:
            return
    raise ChecksumError(tuple(artifact.file_name for artifact in still))


def _move_whole(group: Group, artifacts: tuple[Artifact, ...], files: Path) -> tuple[Artifact, ...]:
    """Returns those that are not what the lock expects."""
    folder = group_folder(group)
    folder.mkdir(parents=True, exist_ok=True)
    broken = []
    for artifact in artifacts:
        arrived = files / artifact.file_name
        if is_whole(arrived, artifact):
            arrived.chmod(0o644)
            arrived.replace(folder / artifact.file_name)
        else:
            broken.append(artifact)
    return tuple(broken)


class _Progress:
    """Says every few seconds how much has arrived, seen from the size of the scratch folder."""

    def __init__(self, scratch: Path, missing: dict[Group, tuple[Artifact, ...]]) -> None:
        self._scratch = scratch
        self._sizes = {group: sum(a.size for a in artifacts) for group, artifacts in missing.items()}
        self._open = dict.fromkeys(missing)
        self._began = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> _Progress:
        total = self._megabytes(sum(self._sizes.values()))
        print(f"fetching {total} MB: {', '.join(group.name for group in self._open)}", flush=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def group_done(self, group: Group) -> None:
        del self._open[group]
        self._say(f"{group.name}: {self._megabytes(self._sizes[group])} MB, checked")

    def _report(self) -> None:
        while not self._end.wait(_SECONDS_BETWEEN_LINES):
            arrived = ", ".join(
                f"{g.name} {self._arrived(g)}/{self._megabytes(self._sizes[g])}" for g in list(self._open)
            )
            self._say(f"MB so far: {arrived}")

    def _arrived(self, group: Group) -> str:
        size = 0
        for folder, _, names in os.walk(self._scratch / group.name):
            if "ivy" in Path(folder).relative_to(self._scratch).parts:
                size += sum(_size_of(Path(folder) / name) for name in names)
        return self._megabytes(min(size, self._sizes[group]))

    def _say(self, text: str) -> None:
        print(f"  {time.monotonic() - self._began:5.1f} s  {text}", flush=True)

    @staticmethod
    def _megabytes(size: int) -> str:
        return f"{size / _MEGABYTE:.1f}"


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
