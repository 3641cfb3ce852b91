"""Where the stack of one project folder keeps what: data, logs, secrets, the lake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ENV_LOCAL = "CDC_LAKEHOUSE_LOCAL"
PROJECT = Path(__file__).absolute().parents[2]


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything lies under `root`; nothing outside of it and the cache is written."""

    root: Path
    project: Path = PROJECT

    @classmethod
    def default(cls, environment: Mapping[str, str] = os.environ) -> Layout:
        named = environment.get(ENV_LOCAL)
        return cls(Path(named).expanduser().absolute() if named else PROJECT / ".local")

    def data(self, component: str) -> Path:
        return self.root / component

    def log(self, component: str) -> Path:
        return self.root / "logs" / f"{component}.log"

    @property
    def state_file(self) -> Path:
        return self.root / "stack.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "stack.lock"

    @property
    def secrets_file(self) -> Path:
        return self.root / "secrets.json"

    @property
    def spark_conf(self) -> Path:
        return self.root / "spark-conf"

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    @property
    def include(self) -> Path:
        return self.project / "include"

    @property
    def pipelines(self) -> Path:
        return self.include / "pipelines"


def write_private(path: Path, text: str) -> None:
    """Only the owner may read it, from its first byte on; replaced as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    scratch.replace(path)
