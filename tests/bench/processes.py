"""What /proc tells about a tree of processes: CPU time, memory, who belongs to whom."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

TAG = "BENCH_VARIANT"
"""Variable that the workers of one variant have in their environment."""
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    cpu_ticks: int
    """Its own: those of children that ended are added to their parent's at any later time."""


def parse_stat(text: str) -> Process:
    """The command may hold blanks and parentheses: fields are counted from the last one."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return Process(int(head.partition("(")[0]), int(fields[1]), sum(map(int, fields[11:13])))


def parse_megabytes(status: str, what: str) -> float:
    """`VmHWM` (the peak) or `VmRSS` (now) of a status file; 0 for a process that is gone but not reaped."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) / 1024
    return 0.0


def parse_environment(data: bytes) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in data.decode(errors="replace").split("\0") if entry)
    return {name: value for name, _, value in pairs}


def descendants(root: int, processes: Iterable[Process]) -> dict[int, Process]:
    """`root` and all below it, by pid."""
    everyone = {each.pid: each for each in processes}
    found = {root: everyone[root]} if root in everyone else {}
    while True:
        more = {pid: each for pid, each in everyone.items() if each.parent in found and pid not in found}
        if not more:
            return found
        found |= more


def forked(tree: Mapping[int, Process], tags: Mapping[int, str], tag: str) -> list[int]:
    """Workers of that tag: children of the daemon, which itself decodes nothing."""
    own = {pid for pid in tree if tags.get(pid) == tag}
    return sorted(pid for pid in own if tree[pid].parent in own)


def tree_of(root: int) -> dict[int, Process]:
    texts = (_read(_PROC / name / "stat") for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208
    return descendants(root, [parse_stat(text.decode(errors="replace")) for text in texts if text])


def cpu_seconds(before: Mapping[int, Process], after: Mapping[int, Process]) -> float:
    """Between two looks at a tree. What ended in between is not seen: workers end when they are idle."""
    ticks = sum(
        each.cpu_ticks - (before[pid].cpu_ticks if pid in before else 0) for pid, each in after.items()
    )
    return ticks / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int, what: str) -> float:
    return parse_megabytes(_read(_PROC / str(pid) / "status").decode(), what)


def worker_pids(root: int, tag: str) -> list[int]:
    tree = tree_of(root)
    found = {pid: parse_environment(_read(_PROC / str(pid) / "environ")).get(TAG, "") for pid in tree}
    return forked(tree, found, tag)


def _read(path: Path) -> bytes:
    """Nothing for a process that ended in between."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
