"""A recording kept in a file: the golden run's changes of storage, and what they were made from.

Who runs it needs no strace, but a broker whose topics have the ids that the recorded ledgers name: no
broker lets anybody choose them, so the test's drivers are told the recorded ones (`identity`).
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from crash.identity import Identity  # type: ignore[import-not-found]
from crash.mutations import Kind, Mutation  # type: ignore[import-not-found]

COMMITTED = Path(__file__).with_name("golden.recording.xz")
_FORMAT = 2


@dataclass(frozen=True, slots=True)
class Recording:
    mutations: Sequence[Mutation]
    quarantined: int
    """How many mutations were there before the quarantine was replayed."""
    first_round: int
    """How many mutations made it, the replay among them."""
    results: Sequence[dict[str, Any]]
    baseline: Sequence[Mutation]
    """What the usual way did with the same records, in a lake of its own."""
    sent: Sequence[Sequence[Any]]
    """Table, partition and offset of every record that consumers see, in the order of sending."""
    identity: Identity

    def save(self, path: Path) -> None:
        head = {
            "mutations": [document_of(each) for each in self.mutations],
            "baseline": [document_of(each) for each in self.baseline],
            "quarantined": self.quarantined,
            "first_round": self.first_round,
            "results": list(self.results),
            "sent": list(self.sent),
            "identity": asdict(self.identity),
        }
        save(path, head, [*self.mutations, *self.baseline])

    @classmethod
    def load(cls, path: Path) -> Self:
        head, data = load(path)
        told = [*head["mutations"], *head["baseline"]]
        every = list(mutations_from(told, data))
        count = len(head["mutations"])
        return cls(
            mutations=every[:count],
            quarantined=head["quarantined"],
            first_round=head["first_round"],
            results=head["results"],
            baseline=every[count:],
            sent=head["sent"],
            identity=Identity(**head["identity"]),
        )


def save(path: Path, head: Mapping[str, Any], mutations: Iterable[Mutation]) -> None:
    """Write `head` as one line of JSON, then the bytes that were written, all of them together."""
    data = b"".join(each.data for each in mutations)
    document = {"format": _FORMAT, **head}
    path.write_bytes(lzma.compress(json.dumps(document, default=str).encode() + b"\n" + data, preset=9))


def load(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return what `save` was given: the head, and the bytes of the mutations."""
    text, _, data = lzma.decompress(path.read_bytes()).partition(b"\n")
    head = json.loads(text)
    if head["format"] != _FORMAT:
        raise ValueError(f"{path} has format {head['format']}, not {_FORMAT}: record it anew")
    return head, data


def document_of(mutation: Mutation) -> list[Any]:
    """Return all of a mutation but its bytes."""
    return [str(mutation.kind), mutation.path, mutation.to, mutation.offset, len(mutation.data)]


def mutations_from(told: Iterable[Sequence[Any]], data: bytes) -> Iterator[Mutation]:
    place = 0
    for kind, path, to, offset, length in told:
        yield Mutation(Kind(kind), path, to=to, offset=offset, data=data[place : place + length])
        place += length
