"""The keys that a person wants to be erased, as the form or a file names them. They enter no log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake, safe
from cdc_lakehouse.repair.erasure.key_digests import KeyDigests, refused

KEYS, KEYS_FILE, WHERE = "keys", "keys_file", "where"
MOST_KEYS = 1_000
"""Keys of one erasure: its record and the commits of the tables name each of them by its digest."""


@dataclass(frozen=True, slots=True)
class KeyRequest:
    keys: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """Columns and values of each key, all with the same columns."""
    where: str = field(default="", repr=False)
    """A condition on silver's columns, in place of keys."""
    file: str = ""
    """URI of the file that the keys were read from."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.keys[0]) if self.keys else ()

    @property
    def digest(self) -> str:
        """Return the MD5 of what was asked for."""
        text = json.dumps([sorted(json.dumps(key, sort_keys=True) for key in self.keys), self.where])
        return md5(text.encode(), usedforsecurity=False).hexdigest()


def keys_folder(lake: Lake) -> str:
    """Return the folder for files with keys, which a person fills and an erasure empties."""
    return f"{lake.operations}/erase"


def read_request(lake: Lake, table: Table, options: Mapping[str, str]) -> KeyRequest | None:
    """Return what the options ask for; None where they name no keys. Raise for two ways at once."""
    given = [name for name in (KEYS, KEYS_FILE, WHERE) if options.get(name, "").strip()]
    if not given:
        return None
    if len(given) > 1:
        raise refused(table, f"its options {' and '.join(given)} name keys; one of them is enough")
    if given == [WHERE]:
        return KeyRequest(where=options[WHERE].strip())
    if given == [KEYS]:
        return KeyRequest(_parse(table, options[KEYS]))
    uri = _uri_of(lake, table, options[KEYS_FILE].strip())
    text = files.read_text_if_there(uri)
    if text is None:
        raise refused(table, f"there is no file {uri}")
    return KeyRequest(_parse(table, text), file=uri)


def key_values(session: SparkSession, table: Table, request: KeyRequest, digests: KeyDigests) -> DataFrame:
    """Return the keys with the types of bronze, one column for each part."""
    names = {*digests.source_names}
    if {*request.columns} != names:
        problem = f"a key is a JSON object with {', '.join(digests.source_names)}, as the source names them"
        raise refused(table, problem)
    schema = StructType([StructField(name, digests.type_of(name)) for name in digests.source_names])
    lines = [(json.dumps(dict(key)),) for key in request.keys]
    parsed = session.createDataFrame(lines, "line string").select(F.from_json("line", schema).alias("key"))
    values = parsed.select("key.*").persist()
    unfit = values.where(F.array_contains(F.array(*(F.isnull(f"`{name}`") for name in names)), True)).count()
    if unfit:
        values.unpersist()
        types = ", ".join(f"{field.name}: {field.dataType.simpleString()}" for field in schema)
        raise refused(table, f"{unfit} of the keys have a value that is NULL or not of its type ({types})")
    return values


def _uri_of(lake: Lake, table: Table, text: str) -> str:
    folder = keys_folder(lake)
    try:
        return f"{folder}/{safe(text.removeprefix(f'{folder}/'))}"
    except ValueError:
        raise refused(table, f"`keys_file` names a file of the folder {folder}") from None


def _parse(table: Table, text: str) -> tuple[Mapping[str, Any], ...]:
    """Return one key per line. Sentences tell numbers of lines, never what is in them."""
    keys: list[Mapping[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            key = json.loads(line)
        except ValueError:
            key = None
        if not isinstance(key, dict) or not key or (keys and key.keys() != keys[0].keys()):
            problem = f"line {number} of its keys is no JSON object of the key's columns, like the others"
            raise refused(table, problem)
        keys.append(key)
    if not keys:
        raise refused(table, "no keys are named")
    if len(keys) > MOST_KEYS:
        raise refused(table, f"{len(keys)} keys are named, {MOST_KEYS} at most can be erased at once")
    return tuple(keys)
