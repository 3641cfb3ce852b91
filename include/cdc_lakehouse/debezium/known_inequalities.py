"""The table of known inequalities, read from the data file beside this module."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from cdc_lakehouse.debezium.inequalities import Inequality, Trait, Weight


def _read(entry: Mapping[str, Any]) -> Inequality:
    """A key that nobody knows is a `TypeError`: the file is ours."""
    texts = {**entry, "types": tuple(entry["types"]), "settings": tuple(entry.get("settings", ()))}
    weight, trait = Weight(texts.pop("loses")), Trait(texts.pop("trait", Trait.NONE))
    return Inequality(**texts, weight=weight, trait=trait)


_FILE = files("cdc_lakehouse.debezium").joinpath("known_inequalities.toml")
KNOWN_INEQUALITIES = tuple(
    _read(entry) for entry in tomllib.loads(_FILE.read_text(encoding="utf-8"))["inequality"]
)
