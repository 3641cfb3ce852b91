"""docker-compose.yml and the native stack's own words, for the tests that hold them level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from artifacts.java import Java
from artifacts.lock import read_lock
from local_stack.component import Site
from local_stack.layout import Layout
from local_stack.ports import OBJECT_STORE, USUAL
from local_stack.secrets_file import Secrets
from local_stack.stack import RunningStack
from local_stack.state import State

ROOT = Path(__file__).parents[2]
ONE_SHOTS = {"connector", "airflow-metadata"}
"""Steps that prepare something and end."""


def compose() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def environment_of(service: str) -> dict[str, str]:
    found: dict[str, str] = services()[service].get("environment", {})
    return found


def native_site(root: Path) -> Site:
    """A site with the usual ports and an object store; nothing is started or written."""
    java, ports = Java(root / "java", "17.0.0"), {**USUAL, **OBJECT_STORE}
    return Site(Layout(root), ports, Secrets.drawn(), java, object_store=True)


def native_stack(root: Path) -> RunningStack:
    site = native_site(root)
    return RunningStack(site, State(site.layout), owned=False)


def locked_version(group: str, name: str) -> str:
    (version,) = {each.version for each in read_lock()[group].artifacts if each.name == name}
    return version
