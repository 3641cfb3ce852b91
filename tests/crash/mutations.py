"""Changes of storage in their order, and the states that they lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self


class Kind(StrEnum):
    FOLDER = "folder"
    CREATE = "create"
    """An empty file, in the place of one that may have been there."""
    WRITE = "write"
    CUT = "cut"
    """To a length, with zeros where it was shorter."""
    RENAME = "rename"
    LINK = "link"
    DELETE = "delete"
    DELETE_FOLDER = "delete folder"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change; paths are relative to the lake's root."""

    kind: Kind
    path: str
    to: str = ""
    offset: int = 0
    data: bytes = b""

    def __str__(self) -> str:
        where = f"{self.path} -> {self.to}" if self.to else self.path
        return f"{self.kind} {where}" + (f" ({len(self.data)} bytes)" if self.data else "")

    def is_continued_by(self, other: Mutation) -> bool:
        return (
            self.kind is other.kind is Kind.WRITE
            and self.path == other.path
            and self.offset + len(self.data) == other.offset
        )

    def half(self) -> Mutation:
        """What of a write has arrived when its process dies in the middle of it."""
        return Mutation(self.kind, self.path, offset=self.offset, data=self.data[: len(self.data) // 2])


@dataclass(frozen=True, slots=True)
class Storage:
    """Everything below the lake's root at one moment."""

    files: dict[str, bytes] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()

    def after(self, mutation: Mutation) -> Storage:
        files, folders = dict(self.files), self.folders
        path = mutation.path
        match mutation.kind:
            case Kind.FOLDER:
                folders |= {path}
            case Kind.CREATE:
                files[path] = b""
            case Kind.WRITE:
                known = files[path]
                before = known[: mutation.offset].ljust(mutation.offset, b"\0")
                files[path] = before + mutation.data + known[mutation.offset + len(mutation.data) :]
            case Kind.CUT:
                files[path] = files[path][: mutation.offset].ljust(mutation.offset, b"\0")
            case Kind.RENAME if path in files:
                files[mutation.to] = files.pop(path)
            case Kind.RENAME:
                return self._with_renamed_folder(path, mutation.to)
            case Kind.LINK:
                files[mutation.to] = files[path]
            case Kind.DELETE:
                del files[path]
            case Kind.DELETE_FOLDER:
                folders -= {path}
        return Storage(files, folders)

    def without(self, is_gone: Callable[[str], bool]) -> Storage:
        """Files that are gone; folders stay, as they do for whoever deletes files."""
        return Storage({path: data for path, data in self.files.items() if not is_gone(path)}, self.folders)

    def with_files(self, files: dict[str, bytes]) -> Storage:
        return Storage({**self.files, **files}, self.folders)

    def _with_renamed_folder(self, old: str, new: str) -> Storage:
        def moved(path: str) -> str:
            return new + path.removeprefix(old) if path == old or path.startswith(f"{old}/") else path

        files = {moved(path): data for path, data in self.files.items()}
        return Storage(files, frozenset(map(moved, self.folders)))

    def written_to(self, root: Path) -> Path:
        """Make it so in an empty folder."""
        root.mkdir(parents=True)
        for folder in self.folders:
            (root / folder).mkdir(parents=True, exist_ok=True)
        for path, data in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        return root

    @classmethod
    def of(cls, root: Path) -> Self:
        paths = sorted(root.rglob("*"))
        files = {str(path.relative_to(root)): path.read_bytes() for path in paths if path.is_file()}
        return cls(files, frozenset(str(path.relative_to(root)) for path in paths if path.is_dir()))


def mutations_of(storage: Storage) -> list[Mutation]:
    """Return changes that make this of an empty lake."""
    made = [Mutation(Kind.FOLDER, folder) for folder in sorted(storage.folders)]
    for path, data in sorted(storage.files.items()):
        made += [Mutation(Kind.CREATE, path), Mutation(Kind.WRITE, path, data=data)]
    return made


def states_of(mutations: Iterable[Mutation], *, begun: Storage | None = None) -> list[Storage]:
    """Before the first change, and behind each of them. Bytes that did not change are shared."""
    states = [begun or Storage()]
    for mutation in mutations:
        states.append(states[-1].after(mutation))
    return states
