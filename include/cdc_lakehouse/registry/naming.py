"""What the archive calls a registry."""

from __future__ import annotations

import re
from hashlib import sha256

import httpx

_PORTS = {"http": 80, "https": 443}


def registry_name(url: str, generation: str | None = None) -> str:
    """Return a name that a folder can have, the same for every spelling of one URL, without a login.

    The digits keep URLs apart that read alike. `generation` tells a registry that lost its data and gives
    ids away again from the one that had this URL before.
    """
    parts = httpx.URL(url)
    address = f"{parts.host.lower()}:{parts.port or _PORTS[parts.scheme]}{parts.path.rstrip('/')}"
    readable = re.sub(r"[^a-z0-9.]+", "-", address.lower()).strip("-.")[:100]
    name = f"{readable or 'registry'}-{sha256(address.encode()).hexdigest()[:8]}"
    return name if generation is None else f"{name}-{generation}"
