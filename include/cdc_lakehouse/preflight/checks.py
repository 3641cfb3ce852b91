"""All checks of one pipeline, in the order in which a person would look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.loader import find_pipeline
from cdc_lakehouse.config.mask_secret import mask_secret
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.settings import Role, connection_from_environment, registry_settings
from cdc_lakehouse.config.storage_settings import storage_settings
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.discovery import discover, needs_topics
from cdc_lakehouse.preflight.findings import Finding
from cdc_lakehouse.preflight.greeting import greet_registry
from cdc_lakehouse.preflight.lake import lake_finding
from cdc_lakehouse.preflight.schemas import schema_findings
from cdc_lakehouse.preflight.source import source_finding
from cdc_lakehouse.preflight.topics import read_kafka, topic_findings
from cdc_lakehouse.registry.client import SchemaRegistry


def check_pipeline(
    name: str, *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Iterator[Finding]:
    """The file, then Kafka, the registry, the lake and the source, each whatever the others said."""
    try:
        pipeline = find_pipeline(name, folder)
    except LakehouseError as error:
        yield Finding.from_error(f"pipeline {name}", error)
        return
    tables, groups = len(pipeline.tables), ", ".join(pipeline.groups)
    yield Finding.fine(f"pipeline {name}", f"tables {tables}, groups {groups}, schedule {pipeline.schedule}")
    discovered: list[Pipeline] = []
    yield from _guarded("kafka", _kafka(pipeline, environ, discovered))
    pipeline = next(iter(discovered), pipeline)
    yield from _guarded("registry", _registry(pipeline, environ))
    yield from _guarded("lake", _lake(environ))
    if any(table.columns.hashes for table in pipeline.tables):
        yield from _guarded("masks", _masks(environ))
    if any(pipeline.verifies(group) for group in pipeline.groups):
        yield from _guarded("source", _source(environ))


def _guarded(subject: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    try:
        yield from findings
    except LakehouseError as error:
        yield Finding.from_error(subject, error)


def _kafka(
    pipeline: Pipeline, environ: Mapping[str, str] | None, discovered: list[Pipeline]
) -> Iterator[Finding]:
    """`discovered` gets the pipeline with all tables that its patterns find."""
    settings = librdkafka_settings(connection_from_environment(Role.KAFKA, environ))
    if needs_topics(pipeline):
        discovery = discover(pipeline, Cluster(settings).topic_names())
        listed, pipeline = len(pipeline.tables), discovery.pipeline
        names = ", ".join(table.name for table in pipeline.tables[listed:])
        control = f"; no tables by their names: {', '.join(discovery.control)}" if discovery.control else ""
        yield Finding.fine("discovery", f"tables found {names or 'none'}{control}")
        for error in discovery.refused:
            yield Finding.from_error(f"topic {error.topic}", error)
    discovered.append(pipeline)
    topics = [topic for table in pipeline.tables for topic in table.topics]
    facts, keeping = read_kafka(settings, topics)
    yield Finding.fine("kafka", f"cluster {facts.cluster_id} at {settings['bootstrap.servers']}")
    yield from topic_findings(pipeline, facts, keeping)


def _registry(pipeline: Pipeline, environ: Mapping[str, str] | None) -> Iterator[Finding]:
    connection = connection_from_environment(Role.REGISTRY, environ)
    subjects = greet_registry(connection)
    settings = registry_settings(connection)
    yield Finding.fine("registry", f"subjects {subjects} at {settings.url}")
    with SchemaRegistry(settings.url, login=settings.login, password=settings.password) as registry:
        yield from schema_findings(pipeline, registry)


def _source(environ: Mapping[str, str] | None) -> Iterator[Finding]:
    kafka = librdkafka_settings(connection_from_environment(Role.KAFKA, environ))
    yield source_finding(connection_from_environment(Role.SOURCE, environ), kafka)


def _lake(environ: Mapping[str, str] | None) -> Iterator[Finding]:
    yield lake_finding(storage_settings(connection_from_environment(Role.STORAGE, environ)))


def _masks(environ: Mapping[str, str] | None) -> Iterator[Finding]:
    secret = mask_secret(connection_from_environment(Role.STORAGE, environ))
    yield Finding.fine("masks", f"the secret with the check value {secret.check()} is there")
