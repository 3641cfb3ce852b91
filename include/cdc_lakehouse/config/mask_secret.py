"""The secret of keyed hashes: where it comes from and how it shows itself, which is not at all."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from cdc_lakehouse.config.settings import Connection

_SHORTEST = 16
_CHECKED = b"cdc_lakehouse: which secret is it?"


@dataclass(frozen=True, slots=True)
class MaskSecret:
    """Its `repr` says nothing."""

    key: bytes = field(repr=False)

    def check(self) -> str:
        """Tells two secrets apart and tells nothing of either."""
        return hmac.digest(self.key, _CHECKED, "sha256").hex()[:16]


def mask_secret(storage: Connection) -> MaskSecret:
    """Of the connection to the lake: who may write silver may mask it."""
    text = storage.extra.get("mask_secret", "")
    if not text:
        raise storage.problem("its extra has no `mask_secret`, and a table's `columns.mask` asks for a hash")
    if len(text) < _SHORTEST:
        raise storage.problem(f"its mask_secret is shorter than {_SHORTEST} characters")
    return MaskSecret(text.encode())
