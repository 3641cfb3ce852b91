"""Does the registry know the topics' schemas, and can this release store every column?"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.settings import Connection, registry_settings
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.debezium.columns import columns_of
from cdc_lakehouse.errors import LakehouseError, RegistryUnavailableError
from cdc_lakehouse.preflight.findings import Finding

_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TopicSchemas:
    """The newest schema texts of a topic; None where the registry has none."""

    key: str | None
    value: str | None


class Registry:
    """The three questions that a check asks of a schema registry."""

    def __init__(self, connection: Connection, transport: httpx.BaseTransport | None = None) -> None:
        settings = registry_settings(connection)
        self._connection = connection
        self._url = settings.url
        self._client = httpx.Client(
            auth=(settings.login, settings.password or "") if settings.login else None,
            verify=_verification(connection, settings.ca_pem),
            timeout=_TIMEOUT_SECONDS,
            transport=transport,
        )

    def greet(self) -> int:
        """How many subjects it has; raises if whoever answers is no schema registry."""
        answer = self._ask("/subjects")
        subjects = _json(answer) if answer.status_code == 200 else None
        if not isinstance(subjects, list):
            raise self._connection.problem(
                f"{self._url} is no schema registry; Apicurio's URL ends with /apis/ccompat/v7"
            )
        return len(subjects)

    def schemas_of(self, topic: str) -> TopicSchemas:
        return TopicSchemas(key=self._newest(f"{topic}-key"), value=self._newest(f"{topic}-value"))

    def _newest(self, subject: str) -> str | None:
        answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions/latest")
        return str(answer.json()["schema"]) if answer.status_code == 200 else None

    def _ask(self, path: str) -> httpx.Response:
        try:
            answer = self._client.get(self._url + path)
        except httpx.HTTPError as error:
            raise RegistryUnavailableError(url=self._url, reason=str(error)) from error
        if answer.status_code in (401, 403):
            raise self._connection.problem(f"the registry refuses its login (HTTP {answer.status_code})")
        if answer.status_code >= 500:
            raise RegistryUnavailableError(url=self._url, reason=f"HTTP {answer.status_code}")
        return answer


def _json(answer: httpx.Response) -> object:
    try:
        return answer.json()
    except ValueError:
        return None


def _verification(connection: Connection, ca_pem: str | None) -> ssl.SSLContext | bool:
    if ca_pem is None:
        return True
    try:
        return ssl.create_default_context(cadata=ca_pem)
    except ssl.SSLError as error:
        raise connection.problem(f"its ca_pem is not a certificate: {error.reason}") from error


def schema_findings(pipeline: Pipeline, registry: Registry) -> Iterator[Finding]:
    """One line per topic, and one more for each column that will not arrive as it was written."""
    for table in pipeline.tables:
        for topic in table.topics:
            yield from topic_schema_findings(table.name, topic, registry.schemas_of(topic))


def topic_schema_findings(table: str, topic: str, schemas: TopicSchemas) -> Iterator[Finding]:
    subject = f"schema of {topic}"
    if schemas.value is None:
        yield Finding.warning(
            subject,
            f"the registry has no subject {topic}-value, so its columns were not checked",
            "Fine while the topic is empty, or if the connector names subjects in its own way.",
        )
        return
    if schemas.key is None:
        yield Finding.problem(
            subject,
            f"the registry has no subject {topic}-key: records without a key cannot become rows of silver",
            advice="Give the source table a primary key, or set message.key.columns at the connector.",
            exit_code=ExitCode.CONFIG,
        )
        return
    try:
        columns = columns_of(schemas.key, schemas.value, table=table)
    except LakehouseError as error:
        yield Finding.from_error(subject, error)
        return
    yield Finding.fine(subject, f"columns {len(columns.row)}, key {', '.join(c.name for c in columns.key)}")
    turned = null_becomes_default(schemas.value)
    if turned:
        yield Finding.warning(
            subject,
            f"NULL becomes DEFAULT: a NULL in {', '.join(turned)} may arrive as the column's default",
            "Drop the default at the source, or set ignore.default.for.nullables=true at the converter.",
        )


def null_becomes_default(value_schema: str) -> tuple[str, ...]:
    """Nullable columns whose default stands first in the union (`cdc-semantics` §6)."""
    schema = json.loads(value_schema)
    return tuple(field["name"] for field in _row_fields(schema) if _hides_null(field))


def _row_fields(schema: Any) -> list[dict[str, Any]]:
    """Fields of the record inside `before`, where Debezium defines it; `after` only refers to it."""
    if not isinstance(schema, dict):
        return []
    for field in schema.get("fields", []):
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        rows = [b for b in branches if isinstance(b, dict) and b.get("type") == "record"]
        if field["name"] in ("before", "after") and rows:
            return list(rows[0]["fields"])
    return []


def _hides_null(field: dict[str, Any]) -> bool:
    return isinstance(field["type"], list) and "null" in field["type"] and field.get("default") is not None
