"""Can this user write to the lake, and would commits be safe there?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from cdc_lakehouse.config.storage_settings import StorageSettings
from cdc_lakehouse.errors import LakehouseError, StorageUnavailableError
from cdc_lakehouse.lake.put_if_absent import require_put_if_absent
from cdc_lakehouse.preflight.findings import Finding


def lake_finding(storage: StorageSettings) -> Finding:
    """Tries with files that are gone at once; a root that does not exist is not made."""
    return _on_disk(storage.root) if storage.s3 is None else _on_s3(storage)


def _on_s3(storage: StorageSettings) -> Finding:
    try:
        require_put_if_absent(storage)
    except LakehouseError as error:
        return Finding.from_error("lake", error)
    return Finding.fine("lake", f"{storage.root} can be written, and refuses to create what is there already")


def _on_disk(root: str) -> Finding:
    folder = Path(urlsplit(root).path)
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest) as probe:
            probe.write(b"probe")
    except OSError as error:
        reason = error.strerror or str(error)
        return Finding.from_error("lake", StorageUnavailableError(root=root, reason=reason))
    made_later = "" if nearest == folder else ", made by the first run"
    return Finding.fine("lake", f"{root} can be written{made_later}")
