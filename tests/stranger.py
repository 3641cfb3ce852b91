"""Somebody on the machine who talks to a port of Spark and has no secret to show."""

from __future__ import annotations

import socket
import struct

_RPC_REQUEST, _ID, _BODY = 3, 1, b"a stranger"
REFUSED = b"Expected SaslMessage"
"""What Spark says before it reads anything of whoever has not shown the secret."""


def answer_to_a_stranger(host: str, port: int) -> bytes:
    """A frame of Spark's protocol: its length with these eight bytes, its kind, then what the kind has."""
    payload = struct.pack(">bqi", _RPC_REQUEST, _ID, len(_BODY)) + _BODY
    with socket.create_connection((host, port), timeout=30) as client, client.makefile("rb") as stream:
        client.sendall(struct.pack(">q", len(payload) + 8) + payload)
        (length,) = struct.unpack(">q", stream.read(8))
        return stream.read(length - 8)
