"""Writer schemas that runs have met, kept beside the tables (decision 0010).

`<id>.json` is written once and holds one schema; `topics/<topic>.json` says which of them a topic's
records have, and is only a shortcut: what it lacks is asked again. `missing/<id>.json` says since when a
record names a schema that nobody knows.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeGuard
from uuid import UUID

from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.debezium.schema_facts import row_fields
from cdc_lakehouse.lake import files
from cdc_lakehouse.registry.versions import TopicVersions, VersionsByRef, oldest_first

logger = logging.getLogger(__name__)

_VERSION = 1
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


class SchemaArchive:
    """A file that is torn, changed by hand or of another release counts as absent, with a warning."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def path(self, ref: SchemaRef) -> str:
        return f"{self._folder}/{ref}.json"

    def text(self, ref: SchemaRef) -> str | None:
        document = _opened(self.path(ref))
        return None if document is None or document.get("id") != _told(ref) else document["schema"]

    def keep(self, ref: SchemaRef, text: str, *, subjects: Iterable[str]) -> None:
        """A second call with the same schema writes nothing; writers side by side do no harm."""
        if self.text(ref) is not None:
            return
        document = {
            "id": _told(ref),
            "schema": text,
            "subjects": sorted(subjects),
            "first_seen": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        files.write_text(self.path(ref), _sealed(document))

    def missing_since(self, ref: SchemaRef) -> datetime:
        """When somebody asked for it in vain for the first time, as the lake remembers; now for a new one.

        Of writers side by side any may be the first. A schema that turns up later is `text`, which counts.
        """
        path = f"{self._folder}/missing/{ref}.json"
        document = _opened(path)
        if document is None or document.get("id") != _told(ref):
            now = datetime.now(UTC)
            files.write_text(path, _sealed({"id": _told(ref), "since": now.isoformat()}))
            return now
        return datetime.fromisoformat(document["since"])

    def topic(self, topic: str) -> TopicVersions:
        """Empty for a topic that no run has met."""
        document = _opened(self._topic_path(topic))
        if document is None or document.get("topic") != topic:
            return TopicVersions()
        return TopicVersions(keys=_versions(document["keys"]), values=_versions(document["values"]))

    def keep_topic(self, topic: str, versions: TopicVersions) -> None:
        """Replaces what was there. Of two writers side by side one wins, and the other asks again."""
        document = {"topic": topic, "keys": _pairs(versions.keys), "values": _pairs(versions.values)}
        files.write_text(self._topic_path(topic), _sealed(document))

    def _topic_path(self, topic: str) -> str:
        if not _TOPIC.fullmatch(topic):
            raise ValueError(f"{topic!r} cannot be the name of a topic")
        return f"{self._folder}/topics/{topic}.json"


def archived_text(archives: str, topic: str, ref: SchemaRef) -> str | None:
    """The schema that records of `topic` mean by `ref`, for whoever does not know their registry.

    None where no archive knows, or two of them know different ones.
    """
    texts = set()
    for folder in files.folders(archives):
        archive = SchemaArchive(folder.uri)
        if ref in archive.topic(topic).values and (text := archive.text(ref)) is not None:
            texts.add(text)
    return texts.pop() if len(texts) == 1 else None


def archived_values(archives: str, topic: str) -> Mapping[SchemaRef, str]:
    """Return value schemas that records of `topic` may have, except those on which archives disagree."""
    texts: dict[SchemaRef, set[str]] = {}
    for folder in files.folders(archives):
        archive = SchemaArchive(folder.uri)
        for ref in archive.topic(topic).values:
            if (text := archive.text(ref)) is not None:
                texts.setdefault(ref, set()).add(text)
    return {ref: known.pop() for ref, known in texts.items() if len(known) == 1}


def archived_events(archives: str, topic: str) -> list[str]:
    """Return the value schemas of `topic` that describe changes of rows."""
    return [text for text in archived_values(archives, topic).values() if row_fields(json.loads(text))]


def archived_in_order(archives: str, topic: str) -> list[tuple[int, str]]:
    """Return value schemas of `topic`, the oldest version first; none where their order is not certain.

    It is not certain where two registries have the topic, or a record named a schema that is no version.
    """
    known = [
        (archive, versions)
        for folder in files.folders(archives)
        if (versions := (archive := SchemaArchive(folder.uri)).topic(topic).values)
    ]
    if len(known) != 1:
        return []
    archive, versions = known[0]
    texts = []
    for ref in oldest_first(versions):
        text = archive.text(ref)
        if not isinstance(ref, int) or versions[ref] is None or text is None:
            return []
        texts.append((ref, text))
    return texts


def _opened(uri: str) -> Mapping[str, Any] | None:
    try:
        text = files.read_text_if_there(uri)
        document = None if text is None else json.loads(text)
    except ValueError:
        text = document = ""
    if text is None:
        return None
    if _is_sealed(document):
        return document
    logger.warning("archived schema is broken", extra={"file": uri})
    return None


def _is_sealed(document: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(document, dict) or document.get("v") != _VERSION:
        return False
    return document.get("sha256") == _digest({k: v for k, v in document.items() if k != "sha256"})


def _sealed(document: Mapping[str, Any]) -> str:
    whole = {"v": _VERSION, **document}
    return json.dumps({**whole, "sha256": _digest(whole)}, indent=1, sort_keys=True)


def _digest(document: Mapping[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _told(ref: SchemaRef) -> int | str:
    return str(ref) if isinstance(ref, UUID) else ref


def _pairs(versions: VersionsByRef) -> list[tuple[int | str, int | None]]:
    return [(_told(ref), number) for ref, number in versions.items()]


def _versions(pairs: Iterable[tuple[int | str, int | None]]) -> dict[SchemaRef, int | None]:
    return {UUID(ref) if isinstance(ref, str) else ref: number for ref, number in pairs}
