"""What the archive calls a registry."""

from __future__ import annotations

import re
from hashlib import sha256

import httpx

_PORTS = {"http": 80, "https": 443}


def registry_name(url: str) -> str:
    """Readable, fit for a folder, the same for every spelling of one URL, and without a login.

    The digits at the end keep URLs apart that read alike.
    """
    parts = httpx.URL(url)
    address = f"{parts.host.lower()}:{parts.port or _PORTS[parts.scheme]}{parts.path.rstrip('/')}"
    readable = re.sub(r"[^a-z0-9.]+", "-", address.lower()).strip("-.")[:100]
    return f"{readable or 'registry'}-{sha256(address.encode()).hexdigest()[:8]}"
