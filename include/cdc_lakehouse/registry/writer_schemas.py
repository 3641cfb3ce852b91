"""Writer schemas for one table: from the registry, checked with and kept in the lake's archive.

The archive serves when the registry is away or has forgotten. Which calls are made and why:
decision 0010.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Protocol

from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.errors import NotSupportedYetError, RegistryUnavailableError, SchemaConflictError
from cdc_lakehouse.registry.sameness import same_schema
from cdc_lakehouse.registry.versions import (
    RecordNames,
    RecordPart,
    TopicVersions,
    Version,
    oldest_first,
    record_name,
)

logger = logging.getLogger(__name__)


class Registry(Protocol):
    """What `registry.client.SchemaRegistry` offers."""

    @property
    def name(self) -> str: ...

    def schema(self, ref: SchemaRef) -> str | None: ...

    def latest(self, subject: str) -> Version | None: ...

    def versions(self, subject: str) -> list[Version]: ...

    def listed(self, topic: str) -> list[Version] | None: ...


class Archive(Protocol):
    """What `lake.schema_archive.SchemaArchive` offers. Whatever is broken there counts as absent."""

    def path(self, ref: SchemaRef) -> str: ...

    def text(self, ref: SchemaRef) -> str | None: ...

    def keep(self, ref: SchemaRef, text: str, *, subjects: Iterable[str]) -> None: ...

    def missing_since(self, ref: SchemaRef) -> datetime: ...

    def topic(self, topic: str) -> TopicVersions: ...

    def keep_topic(self, topic: str, versions: TopicVersions) -> None: ...


class Source(StrEnum):
    """Who vouched for the schemas of a run."""

    REGISTRY = "registry"
    ARCHIVE = "archive"
    """For some of them at least: the registry was away, or did not know them any more."""


@dataclass(frozen=True, slots=True)
class TopicTexts:
    """Schema texts by id or GUID, the oldest version first."""

    keys: Mapping[SchemaRef, str]
    values: Mapping[SchemaRef, str]


@dataclass(frozen=True, slots=True)
class MetSchemas:
    """Schemas that records turned out to name, except those that neither registry nor archive knows."""

    keys: Mapping[SchemaRef, str]
    values: Mapping[SchemaRef, str]
    strange_keys: frozenset[SchemaRef]
    strange_values: frozenset[SchemaRef]
    """Registered, but for something else than the keys, or the values, of these topics (decision 0043)."""


class WriterSchemas:
    def __init__(self, registry: Registry, archive: Archive, *, table: str) -> None:
        self._registry = registry
        self._archive = archive
        self._table = table
        self.source = Source.REGISTRY

    def of_topic(self, topic: str) -> TopicTexts:
        """Of all versions known. Empty where nobody knows any.

        A schema that only a record named counts where its own name is one of the subjects' (decision 0043):
        an earlier release remembered every schema that it met. One registry call while nothing is new, and
        one more for a topic without a key, which may get one.
        """
        archived = self._archive.topic(topic)
        texts = {ref: text for ref in archived.refs if (text := self._archive.text(ref)) is not None}
        known = archived.only(texts.keys())
        serves = bool(known.values and (known.keys or not archived.keys))
        try:
            news = self._news(topic, known) if serves and known == archived else self._all_versions(topic)
        except RegistryUnavailableError as exc:
            if not serves:
                raise
            self._do_without(f"{topic}: {exc}")
            news = []
        for version in news:
            subject = f"{version.subject}/{version.number}"
            texts[version.ref] = self._kept(version.ref, version.text, subjects=[subject])
            known = known.with_version(topic, version)
        if known != archived and known.refs:
            self._archive.keep_topic(topic, known)
        names = _names_in_subjects(known, texts)
        return TopicTexts(
            keys={
                ref: texts[ref]
                for ref in oldest_first(known.keys)
                if known.keys[ref] is not None or names.hold(RecordPart.KEY, texts[ref])
            },
            values={
                ref: texts[ref]
                for ref in oldest_first(known.values)
                if known.values[ref] is not None or names.hold(RecordPart.VALUE, texts[ref])
            },
        )

    def of_records(
        self, topics: Iterable[str], *, keys: frozenset[SchemaRef], values: frozenset[SchemaRef]
    ) -> MetSchemas:
        """Sort the schemas that records of these topics named into those of the topics and strange ones.

        Raises `RegistryUnavailableError` where only the registry could tell whether one belongs to a topic.
        """
        texts: dict[SchemaRef, str] = {}
        foreign: set[SchemaRef] = set()
        for ref in keys | values:
            try:
                text = self._of_record(ref)
            except NotSupportedYetError:  # not Avro, as all schemas of these topics are
                foreign.add(ref)
            else:
                if text is not None:
                    texts[ref] = text
        topic_keys: set[SchemaRef] = set()
        topic_values: set[SchemaRef] = set()
        for topic in dict.fromkeys(topics):
            of_keys = self._find_belonging(
                topic, RecordPart.KEY, {ref: texts[ref] for ref in keys & texts.keys()}
            )
            of_values = self._find_belonging(
                topic, RecordPart.VALUE, {ref: texts[ref] for ref in values & texts.keys()}
            )
            known = self._archive.topic(topic)
            with_met = known.with_met(of_keys, of_values)
            if with_met != known:
                self._archive.keep_topic(topic, with_met)
            topic_keys |= of_keys
            topic_values |= of_values
        registered = texts.keys() | foreign
        return MetSchemas(
            keys={ref: texts[ref] for ref in topic_keys},
            values={ref: texts[ref] for ref in topic_values},
            strange_keys=(keys & registered) - topic_keys,
            strange_values=(values & registered) - topic_values,
        )

    def _find_belonging(
        self, topic: str, part: RecordPart, texts: Mapping[SchemaRef, str]
    ) -> frozenset[SchemaRef]:
        """Return the schemas of `texts` that describe this part of the topic's records (decision 0043).

        A subject of the topic has them, or their records are named like one in such a subject. The registry
        is asked only for those that the archive does not settle.
        """
        archived = self._archive.topic(topic)
        archived_texts = {ref: text for ref in archived.refs if (text := self._archive.text(ref)) is not None}
        belonging = _belonging_to(archived.only(archived_texts.keys()), archived_texts, part, texts)
        if belonging == texts.keys():
            return belonging
        listed, listed_texts = TopicVersions(), dict[SchemaRef, str]()
        for version in self._all_versions(topic):
            listed, listed_texts[version.ref] = listed.with_version(topic, version), version.text
        belonging |= _belonging_to(listed, listed_texts, part, texts)
        strange = texts.keys() - belonging
        return belonging | {ref for ref in strange if self._is_in_subject_of_name(topic, ref, texts[ref])}

    def _is_in_subject_of_name(self, topic: str, ref: SchemaRef, text: str) -> bool:
        """Return whether `<topic>-<record name>` has it, a subject as TopicRecordNameStrategy names them."""
        name = record_name(text)
        versions = () if name is None else self._registry.versions(f"{topic}-{name}")
        return any(version.ref == ref for version in versions)

    def unknown_for(self, refs: Iterable[SchemaRef], span: timedelta) -> frozenset[SchemaRef]:
        """Those that a registry which knows all the others has not known for so long.

        None while the archive had to vouch for any: what was lost there may be lost here (`guarantees` §2.5).
        """
        if self.source is not Source.REGISTRY:
            return frozenset()
        since = {ref: self._archive.missing_since(ref) for ref in refs}
        return frozenset(ref for ref, first in since.items() if datetime.now(UTC) - first >= span)

    def _news(self, topic: str, known: TopicVersions) -> list[Version]:
        """What the archive lacks, or what proves that it is right."""
        latest = self._registry.latest(f"{topic}-value")
        if latest is None:
            self._do_without(f"{topic}: the registry has no subject {topic}-value any more")
            return []
        is_known = known.values.get(latest.ref) == latest.number
        if is_known and known.keys:
            return [latest]
        if not is_known and latest.number != known.newest_value + 1:
            return self._all_versions(topic)
        key = self._registry.latest(f"{topic}-key")
        return [latest] if key is None else [key, latest]

    def _all_versions(self, topic: str) -> list[Version]:
        listed = self._registry.listed(topic)
        if listed:
            return listed
        return [*self._registry.versions(f"{topic}-key"), *self._registry.versions(f"{topic}-value")]

    def _of_record(self, ref: SchemaRef) -> str | None:
        try:
            text = self._registry.schema(ref)
        except RegistryUnavailableError as exc:
            archived = self._archive.text(ref)
            if archived is None:
                raise
            self._do_without(f"schema {ref}: {exc}")
            return archived
        if text is not None:
            return self._kept(ref, text, subjects=())
        archived = self._archive.text(ref)
        if archived is not None:
            self._do_without(f"schema {ref}: the registry does not know it any more")
        return archived

    def _kept(self, ref: SchemaRef, text: str, *, subjects: Iterable[str]) -> str:
        """As the archive has it, which is what older records were written with.

        A registry that says something else was rebuilt; which of the two a record means is unknown.
        """
        archived = self._archive.text(ref)
        if archived is None:
            self._archive.keep(ref, text, subjects=subjects)
            return text
        if not same_schema(archived, text):
            raise SchemaConflictError(
                table=self._table,
                schema=str(ref),
                registry=self._registry.name,
                archived=self._archive.path(ref),
            )
        return archived

    def _do_without(self, reason: str) -> None:
        self.source = Source.ARCHIVE
        logger.warning("schemas from the archive", extra={"reason": reason})


def _belonging_to(
    versions: TopicVersions,
    version_texts: Mapping[SchemaRef, str],
    part: RecordPart,
    texts: Mapping[SchemaRef, str],
) -> frozenset[SchemaRef]:
    """Return the `texts` that are among the `versions` of this part, or whose records are named alike."""
    names = _names_in_subjects(versions, version_texts)
    numbers = versions.keys if part is RecordPart.KEY else versions.values
    return frozenset(
        ref for ref, text in texts.items() if numbers.get(ref) is not None or names.hold(part, text)
    )


def _names_in_subjects(versions: TopicVersions, texts: Mapping[SchemaRef, str]) -> RecordNames:
    """Return the names in the subjects alone: a schema that only a record named may be a strange one."""
    return RecordNames.of_texts(
        keys=[texts[ref] for ref, number in versions.keys.items() if number is not None],
        values=[texts[ref] for ref, number in versions.values.items() if number is not None],
    )
