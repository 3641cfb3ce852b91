"""All checks of one pipeline, in the order in which a person would look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.loader import find_pipeline
from cdc_lakehouse.config.mask_secret import mask_secret
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.rest_settings import connect_settings, registry_settings
from cdc_lakehouse.config.settings import (
    Connection,
    Role,
    connection_from_environment,
    optional_connection,
)
from cdc_lakehouse.config.source_settings import source_settings
from cdc_lakehouse.config.storage_settings import storage_settings
from cdc_lakehouse.connect.connectors import Connector, connectors_by_prefix, read_connectors
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.discovery import discover, needs_topics
from cdc_lakehouse.preflight.connector import connector_findings, missing_connector
from cdc_lakehouse.preflight.encryption import (
    connect_encryption,
    kafka_encryption,
    lake_encryption,
    registry_encryption,
    source_encryption,
)
from cdc_lakehouse.preflight.findings import Finding
from cdc_lakehouse.preflight.greeting import greet_registry
from cdc_lakehouse.preflight.lake import lake_finding
from cdc_lakehouse.preflight.schemas import schema_findings
from cdc_lakehouse.preflight.source import source_finding
from cdc_lakehouse.preflight.source_side import capture_findings
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
    source = optional_connection(Role.SOURCE, environ)
    if source is not None or _needs_source(pipeline):
        yield from _guarded("source", _source(environ))
    connectors: dict[str, Connector] = {}
    yield from _guarded("connect", _check_connectors(pipeline, environ, connectors))
    if source is not None:
        yield from _guarded("source", _check_capture(pipeline, source, connectors))


def _needs_source(pipeline: Pipeline) -> bool:
    promises = any(table.fresh_within for table in pipeline.tables)
    return promises or any(pipeline.verifies(group) for group in pipeline.groups)


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
    yield from kafka_encryption(settings)
    if needs_topics(pipeline):
        with closing(Cluster(settings)) as cluster:
            discovery = discover(pipeline, cluster.topic_names())
        listed, pipeline = len(pipeline.tables), discovery.pipeline
        names = ", ".join(table.name for table in pipeline.tables[listed:])
        control = f"; no tables by their names: {', '.join(discovery.control)}" if discovery.control else ""
        yield Finding.fine("discovery", f"tables found {names or 'none'}{control}")
        if discovery.doubtful:
            yield Finding.note(
                "discovery",
                f"taken for tables, with names like control topics: {', '.join(discovery.doubtful)}",
                "Name those that are tables under `include:` of `discover:`, the others under `exclude:`.",
            )
        for error in discovery.refused:
            yield Finding.from_error(f"topic {error.topic}", error)
    discovered.append(pipeline)
    topics = [topic for table in pipeline.tables for topic in table.topics]
    facts, keeping = read_kafka(settings, topics)
    yield Finding.fine("kafka", f"cluster {facts.cluster_id} at {settings['bootstrap.servers']}")
    yield from topic_findings(pipeline, facts, keeping)


def _registry(pipeline: Pipeline, environ: Mapping[str, str] | None) -> Iterator[Finding]:
    connection = connection_from_environment(Role.REGISTRY, environ)
    settings = registry_settings(connection)
    yield from registry_encryption(settings)
    subjects = greet_registry(connection)
    yield Finding.fine("registry", f"subjects {subjects} at {settings.url}")
    with SchemaRegistry(settings) as registry:
        yield from schema_findings(pipeline, registry)


def _source(environ: Mapping[str, str] | None) -> Iterator[Finding]:
    kafka = librdkafka_settings(connection_from_environment(Role.KAFKA, environ))
    connection = connection_from_environment(Role.SOURCE, environ)
    yield from source_encryption(source_settings(connection))
    yield source_finding(connection, kafka)


def _check_connectors(
    pipeline: Pipeline, environ: Mapping[str, str] | None, connectors: dict[str, Connector]
) -> Iterator[Finding]:
    """`connectors` gets those that feed the pipeline, by their prefix."""
    connection = optional_connection(Role.CONNECT, environ)
    if connection is None:
        yield Finding.note(
            "connect",
            "there is no connection to Kafka Connect: whether the connector runs, and how it is set, was not "
            "looked at",
            "Make a connection lakehouse_connect with the URL of Kafka Connect's REST interface.",
        )
        return
    yield from connect_encryption(connect_settings(connection))
    known = connectors_by_prefix(read_connectors(connection))
    prefixes = {prefix_and_relation(topic)[0] for table in pipeline.tables for topic in table.topics}
    for prefix in sorted(prefixes):
        if prefix in known:
            connectors[prefix] = known[prefix]
            yield from connector_findings(known[prefix], pipeline)
        else:
            yield missing_connector(prefix, known)


def _check_capture(
    pipeline: Pipeline, connection: Connection, connectors: Mapping[str, Connector]
) -> Iterator[Finding]:
    database = Database.of(connection)
    for connector in connectors.values() or (None,):
        yield from capture_findings(database, pipeline, connector)


def _lake(environ: Mapping[str, str] | None) -> Iterator[Finding]:
    storage = storage_settings(connection_from_environment(Role.STORAGE, environ))
    yield from lake_encryption(storage)
    yield lake_finding(storage)


def _masks(environ: Mapping[str, str] | None) -> Iterator[Finding]:
    secret = mask_secret(connection_from_environment(Role.STORAGE, environ))
    yield Finding.fine("masks", f"the secret with the check value {secret.check()} is there")
