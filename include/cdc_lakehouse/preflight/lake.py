"""Can this user write to the lake?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.preflight.findings import Finding


def lake_finding(root: str) -> Finding:
    """Tries with a nameless file that is gone at once; a root that does not exist is not made."""
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
