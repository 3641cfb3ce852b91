"""The committed corpus: few small inputs that reach, together, what very many reach."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cdc_lakehouse import avro, debezium

MOST_FILES, MOST_BYTES, LARGEST_FILE = 56, 90_000, 2_500
WATCHED = tuple(str(Path(package.__file__).parent) for package in (avro, debezium) if package.__file__)
Arc = tuple[str, int, int]


def arcs(check: Callable[[bytes], None], data: bytes) -> frozenset[Arc]:
    """Pairs of lines of the decoder that were run one after the other."""
    found: set[Arc] = set()

    def entered(frame: Any, _event: str, _value: Any) -> Any:
        name, last = frame.f_code.co_filename, 0
        if not name.startswith(WATCHED):
            return None

        def ran(frame: Any, event: str, _value: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return ran

        return ran

    sys.settrace(entered)
    try:
        check(data)
    finally:
        sys.settrace(None)
    return frozenset(found)


def chosen(reached: dict[bytes, frozenset[Arc]]) -> list[bytes]:
    """Greedy: whichever adds most for its size, until nothing is added or there is no room."""
    left, size = dict(reached), 0
    kept: list[bytes] = []
    seen: set[Arc] = set()
    while left and len(kept) < MOST_FILES:
        data = max(left, key=lambda each: (len(left[each] - seen) / (200 + len(each)), -len(each), each))
        new = left.pop(data) - seen
        if not new:
            break
        if size + len(data) <= MOST_BYTES:
            kept.append(data)
            size += len(data)
            seen |= new
    return kept


def minimised(inputs: Iterable[bytes], targets: Any, folder: Path) -> str:
    """Replaces what is in `folder`; the same again for the same inputs."""
    small = [data for data in dict.fromkeys(inputs) if len(data) <= LARGEST_FILE]
    for data in small:
        targets.check(data)  # once without a look: what is compiled is compiled once
    reached = {data: arcs(targets.check, data) for data in small}
    kept = chosen(reached)
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for data in kept:
        (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    of_all, of_kept = (len(set[Arc]().union(*(reached[data] for data in some))) for some in (small, kept))
    size = sum(map(len, kept))
    return f"{len(kept)} of {len(small)} inputs, {size} bytes: {of_kept} of {of_all} pairs of lines"
