"""The states a crash can leave, each with its variants, and which of them are the same to the next run."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from urllib.parse import unquote

from cdc_lakehouse.lake.names import SCHEMA_CHANGES
from crash.broker import PIPELINE  # type: ignore[import-not-found]
from crash.mutations import Kind, Mutation, Storage  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]

CHECKPOINTS = f"_ops/{PIPELINE}/checkpoints/"
_SCHEMAS = "_ops/schemas/"
_ARCHIVE = f"_archive/{PIPELINE}/"
_REPAIRS = f"_ops/{PIPELINE}/repairs/"
_SHADOWS = f"_ops/{PIPELINE}/shadows/"
_COMMIT = re.compile(r"^\d{20}\.json$")
_LAYERS = ("bronze", "silver")


@dataclass(frozen=True, slots=True)
class State:
    """One state of the lake that a run may find."""

    name: str
    variant: str
    storage: Storage


def enumerated(mutations: Sequence[Mutation], states: Sequence[Storage], *, seed: int) -> Iterator[State]:
    """Every prefix of the mutations, and its variants. The same for the same seed."""
    chance = random.Random(seed)
    for place, storage in enumerate(states):
        done = str(mutations[place - 1]) if place else "nothing"
        name = f"{place} after {done}"
        yield State(name, "prefix", storage)
        if place < len(mutations) and mutations[place].kind is Kind.WRITE:
            torn = mutations[place].half()
            yield State(f"{place} in the middle of {torn}", "torn", storage.after(torn))
        for variant, changed in _surgery(storage, states, place, chance):
            if changed.files != storage.files:
                yield State(name, variant, changed)


def _surgery(
    storage: Storage, states: Sequence[Storage], place: int, chance: random.Random
) -> Iterator[tuple[str, Storage]]:
    """What people and half-done clean-ups do to a lake."""
    yield "checkpoints deleted", storage.without(lambda path: path.startswith(CHECKPOINTS))
    part = chance.choice(("/offsets/", "/commits/", "/metadata", "/sources/"))
    yield f"checkpoints without {part}", storage.without(lambda p: p.startswith(CHECKPOINTS) and part in p)
    older = states[chance.randrange(place + 1)]
    yield "older checkpoints", _with_checkpoints(storage, _checkpoints(older))
    yield "checkpoints of another table", _with_checkpoints(storage, _swapped(_checkpoints(storage)))
    yield "checksums deleted", storage.without(_is_checksum)
    yield "leftover temporary files", storage.with_files(_leftovers(storage, chance))


def _checkpoints(storage: Storage) -> dict[str, bytes]:
    return {path: data for path, data in storage.files.items() if path.startswith(CHECKPOINTS)}


def _with_checkpoints(storage: Storage, checkpoints: dict[str, bytes]) -> Storage:
    return storage.without(lambda path: path.startswith(CHECKPOINTS)).with_files(checkpoints)


def _swapped(checkpoints: dict[str, bytes]) -> dict[str, bytes]:
    """The folders of two tables, one for the other."""
    first, second = list(PARTITIONS)[:2]
    other = {first: second, second: first}
    moved = {}
    for path, data in checkpoints.items():
        table, slash, rest = path.removeprefix(CHECKPOINTS).partition("/")
        moved[f"{CHECKPOINTS}{other.get(table, table)}{slash}{rest}"] = data
    return moved


def _is_checksum(path: str) -> bool:
    return path.endswith(".crc")


def _leftovers(storage: Storage, chance: random.Random) -> dict[str, bytes]:
    """Beside every newest commit and every report: a temporary file that was never renamed."""
    found: dict[str, bytes] = {}
    for path, data in storage.files.items():
        folder, _, name = path.rpartition("/")
        if _COMMIT.match(name):
            number = int(name.removesuffix(".json")) + 1
            found = {k: v for k, v in found.items() if not k.startswith(f"{folder}/")}
            found[f"{folder}/.{number:020d}.json.{chance.randrange(10**6)}.tmp"] = data[: len(data) // 2]
            parquet = f"part-00000-{chance.randrange(10**6)}.snappy.parquet"
            found[f"{folder.removesuffix('/_delta_log')}/{parquet}"] = b"PAR1" + data[:100]
    return found


def key(storage: Storage, table: str) -> str:
    """Equal keys: no file differs that a run of the table reads.

    Read are folders, logs with their checksums, whatever is there before the first commit, the data files of
    the newest version, and the schemas' archive; of the table itself, of what stands beside its silver
    (tombstones, history), and of the log of schema changes; the records of its repairs, its Delta tables in
    the archive, and those that a rebuild computes.
    Not read are checkpoints of other attempts, reports, temporary files, and data that no log names;
    a seeded sample of states that differ in these only is run in spite of it.
    """
    told = sha256()
    for folder in sorted(path for path in storage.folders if _folder_of(path, table)):
        told.update(folder.encode() + b"/\0")
    for path in sorted(_read_by(storage, table)):
        data = storage.files.get(path)
        told.update(path.encode() + b"\0" + (b"absent" if data is None else _digest(data)))
    return told.hexdigest()


def _read_by(storage: Storage, table: str) -> set[str]:
    whole = (_SCHEMAS, f"{_REPAIRS}{table}/")
    read = {path for path in storage.files if path.startswith(whole) and not _is_temporary(_name_of(path))}
    by_folder: dict[str, list[str]] = {}
    for path in sorted(storage.files):
        folder = _folder_of(path, table)
        if folder:
            by_folder.setdefault(folder, []).append(path)
    for folder, paths in by_folder.items():
        read |= _read_in(folder, {path: storage.files[path] for path in paths})
    return read


def _read_in(folder: str, files: Mapping[str, bytes]) -> set[str]:
    """`files` are all of one Delta table, in their order."""
    log = f"{folder}/_delta_log/"
    names = [path.removeprefix(log) for path in files if path.startswith(log)]
    commits = [files[f"{log}{name}"] for name in names if _COMMIT.match(name)]
    read = {f"{log}{name}" for name in names if not _is_temporary(name)}
    read |= {path for path in files if path.startswith(f"{folder}/deletion_vector_")}
    if not commits:
        read |= set(files)
    for file in _active_files(commits):
        read |= {f"{folder}/{file}", f"{folder}/.{file}.crc"}
    return read


def _folder_of(path: str, table: str) -> str:
    """The Delta table that the path is of, if a run of `table` reads that one; empty for all others."""
    for place in (_ARCHIVE, _SHADOWS):
        if path.startswith(f"{place}{table}/"):
            # A plan's folder, and in it the folder of each Delta table.
            return "/".join(path.split("/")[: place.count("/") + 3])
    layer, _, rest = path.partition("/")
    pipeline, _, rest = rest.partition("/")
    name = rest.partition("/")[0]
    is_read = name in (table, SCHEMA_CHANGES) or name.startswith(f"{table}__")
    return f"{layer}/{pipeline}/{name}" if layer in _LAYERS and pipeline == PIPELINE and is_read else ""


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and (name.endswith((".tmp", ".tmp.crc", ".part")))


def _active_files(commits: Sequence[bytes]) -> set[str]:
    """Of the newest version; older ones may lose theirs to VACUUM."""
    active: set[str] = set()
    for commit in commits:
        removed, added = files_of(commit)
        active = (active - removed) | added
    return active


@cache
def files_of(commit: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """What a commit removes and what it adds."""
    actions = [json.loads(line) for line in commit.splitlines() if line.strip()]
    return (
        frozenset(unquote(action["remove"]["path"]) for action in actions if "remove" in action),
        frozenset(unquote(action["add"]["path"]) for action in actions if "add" in action),
    )


@cache
def _digest(data: bytes) -> bytes:
    """Thousands of states share their bytes."""
    return sha256(data).digest()


@dataclass(frozen=True, slots=True)
class Work:
    """A state, and the tables of it that no earlier state has answered for."""

    state: State
    tables: tuple[str, ...]
    is_witness: bool = False
    """Equal to one that is run, but for files of which we say that they do not matter."""


@dataclass(frozen=True, slots=True)
class Collapsed:
    enumerated: int
    by_variant: dict[str, int]
    work: list[Work]


def collapsed(states: Iterator[State], *, witnesses: int, seed: int) -> Collapsed:
    """Which states have to be run, and for which tables."""
    known: set[tuple[str, str]] = set()
    variants: dict[str, int] = {}
    work, equal = [], []
    for state in states:
        variants[state.variant] = variants.get(state.variant, 0) + 1
        keys = {table: key(state.storage, table) for table in PARTITIONS}
        fresh = tuple(table for table, told in keys.items() if (table, told) not in known)
        known |= set(keys.items())
        if fresh:
            work.append(Work(state, fresh))
        else:
            equal.append(state)
    chosen = random.Random(seed).sample(equal, min(witnesses, len(equal)))
    work += [Work(state, tuple(PARTITIONS), is_witness=True) for state in chosen]
    return Collapsed(sum(variants.values()), variants, work)
