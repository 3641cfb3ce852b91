"""Which port each listener gets: the usual one if it is free, else a free one that no outgoing call takes."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
USUAL = {
    "postgres": 5432,
    "kafka": 9092,
    "kafka-controller": 9093,
    "registry": 8081,
    "connect": 8083,
    "airflow": 8080,
}
OBJECT_STORE = {
    "object-store": 8333,
    "object-store-grpc": 18333,
    "object-store-master": 9333,
    "object-store-master-grpc": 19333,
    "object-store-volume": 9340,
    "object-store-volume-grpc": 19340,
    "object-store-filer": 8888,
    "object-store-filer-grpc": 18888,
    "object-store-admin-grpc": 23646,
}
"""Its servers in one process; all but the first talk to each other only."""
_LOWEST = 20_000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def first_ephemeral_port() -> int:
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError):
        return 32_768


@dataclass(frozen=True, slots=True)
class PortChoice:
    ports: Mapping[str, int]
    moved: Mapping[str, int]
    """Listeners that had this port before; something else holds it now."""


def choose_ports(
    remembered: Mapping[str, int],
    *,
    listeners: Mapping[str, int] = USUAL,
    seed: str,
    free: Callable[[int], bool] = is_free,
    ceiling: int | None = None,
) -> PortChoice:
    """Remembered ports stay while they are free; `seed` spreads the stacks of several folders."""
    upper = ceiling if ceiling is not None else first_ephemeral_port()
    chosen: dict[str, int] = {}
    moved: dict[str, int] = {}
    for listener, usual in listeners.items():
        before = remembered.get(listener)
        if before is not None and free(before):
            chosen[listener] = before
            continue
        if before is not None:
            moved[listener] = before
        taken = {*chosen.values(), *remembered.values()}
        chosen[listener] = usual if usual not in taken and free(usual) else _search(seed, taken, free, upper)
    return PortChoice(chosen, moved)


def _search(seed: str, taken: set[int], free: Callable[[int], bool], upper: int) -> int:
    lowest = min(_LOWEST, upper - 2_000)
    span = upper - lowest
    start = zlib.crc32(seed.encode()) % span
    for step in range(span):
        port = lowest + (start + step) % span
        if port not in taken and free(port):
            return port
    raise OSError(f"no port between {lowest} and {upper} is free")
