"""Archives of the lock, unpacked once into the cache beside the archive's own group."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import Any

from artifacts.cache import cache_root, exclusive, fetched_folder


def unpacked(group: str) -> Path:
    """The folder with the content of the group's one archive; the second call finds it and does nothing."""
    archives = fetched_folder(group)
    target = cache_root() / "unpacked" / archives.name
    if target.is_dir():
        return target
    with exclusive("unpacked"):
        if target.is_dir():
            return target
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpack-") as scratch:
            content = Path(scratch) / "content"
            for archive in archives.glob("*.tar.gz"):
                with tarfile.open(archive) as tar:
                    tar.extractall(content, **_careful())  # noqa: S202 - a file of the lock, its hash checked
            content.rename(target)
    return target


def _careful() -> dict[str, Any]:
    """Python 3.11.0 to 3.11.3 have no filters; there the archive's checked hash is what we trust."""
    return {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
