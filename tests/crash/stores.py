"""Where the lakes of the tier lie: each in its folder, or in a bucket with that folder as its mirror."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyarrow.fs import FileSystem, LocalFileSystem, copy_files

from artifacts.spark_files import DEFAULTS_FILE
from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE
from crash.mutations import Storage  # type: ignore[import-not-found]
from local_stack import LocalStack
from local_stack.environment import job_environment
from local_stack.object_store import BUCKET

_PREFIX = f"{BUCKET}/crash"
_AT_ONCE = 8


class Store(Protocol):
    """A lake is known by its folder, wherever its files are."""

    def environment(self) -> Mapping[str, str]:
        """For drivers, beside what they are told in any case."""

    def root_of(self, lake: Path) -> str:
        """For jobs."""

    def make(self, storage: Storage, lake: Path) -> Path:
        """The lake, in a folder that is not there yet."""

    def seen(self, lake: Path) -> Path:
        """The folder, with what the lake holds now."""


class Disk:
    def environment(self) -> Mapping[str, str]:
        return {}

    def root_of(self, lake: Path) -> str:
        return lake.as_uri()

    def make(self, storage: Storage, lake: Path) -> Path:
        made: Path = storage.written_to(lake)
        return made

    def seen(self, lake: Path) -> Path:
        return lake


@dataclass(frozen=True, slots=True)
class Bucket:
    variables: Mapping[str, str]
    filesystem: FileSystem

    def environment(self) -> Mapping[str, str]:
        return self.variables

    def root_of(self, lake: Path) -> str:
        return f"s3a://{_PREFIX}/{lake.name}"

    def make(self, storage: Storage, lake: Path) -> Path:
        lake.mkdir(parents=True)

        def put(path: str) -> None:
            with self.filesystem.open_output_stream(f"{_PREFIX}/{lake.name}/{path}") as stream:
                stream.write(storage.files[path])

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(put, storage.files))
        return lake

    def seen(self, lake: Path) -> Path:
        shutil.rmtree(lake)
        lake.mkdir()
        copy_files(
            f"{_PREFIX}/{lake.name}",
            str(lake),
            source_filesystem=self.filesystem,
            destination_filesystem=LocalFileSystem(),
        )
        return lake


@contextmanager
def bucket(folder: Path, *, settings: Mapping[str, str]) -> Iterator[Bucket]:
    """An object store for the length of the block; its jars must be in the cache."""
    with LocalStack(folder, object_store=True).running("object-store", airflow=False) as stack:
        conf = stack.site.layout.spark_conf
        with (conf / DEFAULTS_FILE).open("a", encoding="utf-8") as defaults:
            defaults.writelines(f"{name} {value}\n" for name, value in settings.items())
        told = job_environment(stack.site)
        yield Bucket(
            {"SPARK_CONF_DIR": str(conf), ENV_CONNECTION_STORAGE: _rooted(told[ENV_CONNECTION_STORAGE])},
            stack.object_store.filesystem(),
        )


def _rooted(connection: str) -> str:
    """At the folder that holds all lakes."""
    document = json.loads(connection)
    return json.dumps({**document, "extra": {**document["extra"], "root": f"s3a://{_PREFIX}"}})
