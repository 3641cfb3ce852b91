"""This package as one zip for the executors of a cluster: the code that the driver runs, and no other."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import cdc_lakehouse

_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_package_zip(folder: Path, *, package: Path | None = None) -> Path:
    """Named by its content: the same code makes the same file, on whatever machine, at whatever time."""
    content = _zipped(package or Path(cdc_lakehouse.__file__).parent)
    target = folder / f"cdc_lakehouse-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    target.write_bytes(content)
    return target


def _zipped(package: Path) -> bytes:
    """Stored, not deflated: another zlib would make other bytes."""
    names = {path.relative_to(package.parent).as_posix(): path for path in package.rglob("*.py")}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, path in sorted(names.items()):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()
