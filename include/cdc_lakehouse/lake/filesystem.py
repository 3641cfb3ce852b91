"""The store behind a URI: the one place that knows how each kind of store is opened."""

from __future__ import annotations

from pyarrow.fs import FileSystem


def filesystem_of(uri: str) -> tuple[FileSystem, str]:
    """The file system of `uri` and the path inside it; the same on the driver and in a worker."""
    filesystem, path = FileSystem.from_uri(uri)
    return filesystem, path
