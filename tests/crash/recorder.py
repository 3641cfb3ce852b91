"""What a process tree does to a folder, in one order, as the kernel saw it.

Only the kernel sees the JVM, the Python workers and the native libraries of both in one order. strace
stops each of their threads at each of these calls, one after another, so the order of its entries is
one in which no effect stands before its cause. Notifications (inotify) drop and merge changes, and a
file system written for one of the two worlds does not see the other one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from crash.mutations import Kind, Mutation  # type: ignore[import-not-found]

_CALLS = (
    "open,openat,creat,write,pwrite64,writev,pwritev,lseek,close,dup,dup2,dup3,rename,renameat,renameat2,link,"
    "linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate,sendfile,copy_file_range,fallocate,symlink,"
    "symlinkat"
)
_LONGEST = 64 * 1024 * 1024
_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)")
_UNFINISHED = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)\) += (-?\d+|\?)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DESCRIPTOR = re.compile(r"^(\d+|AT_FDCWD)<((?:[^<>\\]|\\.)*)>")


class NoTracerError(RuntimeError):
    """Nothing can be recorded."""


class UnknownChangeError(RuntimeError):
    """A call changes the folder in a way that cannot be made again."""


def can_record() -> bool:
    return shutil.which("strace") is not None


def tracing(output: Path) -> list[str]:
    """What stands before a command that is to be recorded."""
    program = shutil.which("strace")
    if program is None:
        raise NoTracerError("the crash tier records with strace: install it (Debian: apt-get install strace)")
    return [
        *(program, "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", str(_LONGEST)),
        *("-e", f"trace={_CALLS}", "-e", "signal=none", "-o", str(output)),
    ]


@dataclass(slots=True)
class _Call:
    name: str
    arguments: str
    result: int = -1


@dataclass(slots=True)
class _Reader:
    """Follows file positions: a plain write says where it goes only by what went before."""

    root: str
    positions: dict[str, int] = field(default_factory=dict)

    def mutations(self, calls: list[_Call]) -> Iterator[Mutation]:
        for call in calls:
            if call.result < 0 or self.root_in(call.arguments) is False:
                continue
            yield from self._mutations_of(call)

    def root_in(self, arguments: str) -> bool:
        return self.root in arguments or _hex(self.root) in arguments

    def _mutations_of(self, call: _Call) -> Iterator[Mutation]:
        match call.name:
            case "open" | "openat" | "creat":
                yield from self._opened(call)
            case "write" | "pwrite64":
                yield from self._written(call)
            case "lseek":
                self.positions[self._file(call)[1]] = call.result
            case "rename" | "renameat" | "renameat2" | "link" | "linkat":
                yield from self._named_anew(call)
            case "ftruncate":
                path, _ = self._file(call)
                if path is not None:
                    yield Mutation(Kind.CUT, path, offset=int(call.arguments.rpartition(", ")[2]))
            case "close" | "dup" | "dup2" | "dup3":
                pass
            case _:
                yield from self._of_one_path(call)

    def _named_anew(self, call: _Call) -> Iterator[Mutation]:
        source, target = self._paths(call)
        if source is None and target is None:  # of a folder whose name begins alike
            return
        if source is None or target is None:
            raise UnknownChangeError(f"{call.name} over the folder's border: {call.arguments[:300]}")
        yield Mutation(Kind.RENAME if call.name.startswith("rename") else Kind.LINK, source, to=target)

    def _of_one_path(self, call: _Call) -> Iterator[Mutation]:
        kind = {"unlink": Kind.DELETE, "rmdir": Kind.DELETE_FOLDER}.get(call.name)
        if call.name == "unlinkat":
            kind = Kind.DELETE_FOLDER if "AT_REMOVEDIR" in call.arguments else Kind.DELETE
        elif call.name in ("mkdir", "mkdirat"):
            kind = Kind.FOLDER
        if kind is None:
            raise UnknownChangeError(f"{call.name}({call.arguments[:300]})")
        (path,) = self._paths(call)
        if path is not None:
            yield Mutation(kind, path)

    def _opened(self, call: _Call) -> Iterator[Mutation]:
        path = self._paths(call)[0]
        if path is None:
            return
        self.positions[f"{path}#{call.result}"] = 0
        if "O_TRUNC" in call.arguments or "O_CREAT" in call.arguments or call.name == "creat":
            if (
                "O_CREAT" in call.arguments
                and "O_TRUNC" not in call.arguments
                and "O_EXCL" not in call.arguments
            ):
                raise UnknownChangeError(f"opened for appending: {call.arguments[:300]}")
            yield Mutation(Kind.CREATE, path)

    def _written(self, call: _Call) -> Iterator[Mutation]:
        path, key = self._file(call)
        if path is None:
            return
        found = _TEXT.search(call.arguments)
        if found is None or call.arguments.endswith("..."):
            raise UnknownChangeError(f"{call.name} to {path} without its bytes")
        data = _bytes(found[1])[: call.result]
        if call.name == "pwrite64":
            offset = int(call.arguments.rpartition(", ")[2])
        else:
            offset = self.positions.get(key, 0)
            self.positions[key] = offset + len(data)
        yield Mutation(Kind.WRITE, path, offset=offset, data=data)

    def _file(self, call: _Call) -> tuple[str | None, str]:
        """Its path now, also where it was renamed while it was open; and what its position is known by."""
        found = _DESCRIPTOR.match(call.arguments)
        if found is None:
            raise UnknownChangeError(f"{call.name}({call.arguments[:300]})")
        path = self._inside(_plain(found[2]))
        return path, f"{path}#{found[1]}"

    def _paths(self, call: _Call) -> list[str | None]:
        return [self._inside(_bytes(text).decode()) for text in _TEXT.findall(call.arguments)]

    def _inside(self, path: str) -> str | None:
        return path.removeprefix(self.root + "/") if path.startswith(self.root + "/") else None


def recorded(output: Path, root: Path) -> list[Mutation]:
    """Every change below `root` that `tracing(output)` saw, in the order of the calls' entries."""
    return list(_joined(_Reader(os.path.realpath(root)).mutations(_calls(output))))


def _joined(mutations: Iterator[Mutation]) -> Iterator[Mutation]:
    """Writes that follow each other in one file are one: Parquet comes in crumbs of a few bytes."""
    last: Mutation | None = None
    for each in mutations:
        if last is not None and last.is_continued_by(each):
            last = replace(last, data=last.data + each.data)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _calls(output: Path) -> list[_Call]:
    calls: list[_Call] = []
    open_calls: dict[str, _Call] = {}
    with output.open(encoding="ascii", errors="replace") as lines:
        for raw in lines:
            line = raw.rstrip("\n")
            if (found := _UNFINISHED.match(line)) is not None:
                open_calls[found[1]] = _Call(found[2], found[3])
                calls.append(open_calls[found[1]])
            elif (found := _RESUMED.match(line)) is not None:
                call = open_calls.pop(found[1])
                call.arguments += found[2]
                call.result = _result(found[3])
            elif (found := _LINE.match(line)) is not None:
                calls.append(_Call(found[2], found[3], _result(found[4])))
    return calls


def _result(text: str) -> int:
    return -1 if text == "?" else int(text)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _plain(text: str) -> str:
    return _bytes(text).decode() if text.startswith("\\x") else text


def _hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())
