"""Connectors as Kafka Connect describes them: their settings, and whether connector and tasks run.

Settings may hold passwords and traces may hold values of rows, so neither is ever printed or logged as a
whole: of a trace the names of its exceptions are kept, of the settings single keys are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from cdc_lakehouse.config.rest_settings import RestSettings, connect_settings
from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.debezium.unavailable import PLACEHOLDER, PLACEHOLDER_SETTING, placeholder_bytes
from cdc_lakehouse.errors import ConnectUnavailableError, PlaceholderDiffersError
from cdc_lakehouse.rest_client import http_client, reason_of

RUNNING = "RUNNING"
_TIMEOUT_SECONDS = 5.0
_EXCEPTION = re.compile(
    r"(?:\A|^Caused by: )((?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*)(?::|\s*$)", re.MULTILINE
)
"""The exception of a trace and its causes; other lines may be those of a message, with values of rows."""
_PREFIX_SETTINGS = ("topic.prefix", "database.server.name")
"""The setting that topics are named after, and its name before Debezium 2."""


@dataclass(frozen=True, slots=True)
class Part:
    """A connector or one of its tasks, with its state."""

    name: str
    state: str
    exceptions: tuple[str, ...] = ()
    """Class names of the exceptions that ended it, from the outermost to the root cause."""

    def __str__(self) -> str:
        names = [name.rpartition(".")[2] for name in self.exceptions]
        ends = list(dict.fromkeys((names[0], names[-1]))) if names else []
        return f"{self.name} is {self.state}" + (f" ({', caused by '.join(ends)})" if ends else "")


@dataclass(frozen=True, slots=True)
class Connector:
    name: str
    settings: Mapping[str, str] = field(repr=False)
    parts: tuple[Part, ...]
    """The connector itself first, then its tasks."""

    @property
    def prefix(self) -> str | None:
        """First part of the names of its topics."""
        return next((self.settings[key] for key in _PREFIX_SETTINGS if key in self.settings), None)

    def setting(self, name: str, default: str) -> str | None:
        """Return a setting in plain text; None where a configuration provider fills it in (`${env:X}`)."""
        value = self.settings.get(name, default)
        return None if "${" in value else value

    def refuse_other_placeholder(self, expected: Sequence[str], *, table: str) -> None:
        """Raise `PlaceholderDiffersError` where the connector sends a placeholder that is not expected."""
        sent = self.setting(PLACEHOLDER_SETTING, PLACEHOLDER)
        if sent is not None and placeholder_bytes(sent) not in map(placeholder_bytes, expected):
            names = ", ".join(map(repr, expected))
            raise PlaceholderDiffersError(table=table, connector=self.name, sent=repr(sent), expected=names)

    @property
    def problem(self) -> str | None:
        """The reason why it sends nothing to Kafka now; None while it and its tasks run."""
        stopped = [str(part) for part in self.parts if part.state != RUNNING]
        if stopped:
            return f"connector {self.name}: {'; '.join(stopped)}"
        return f"connector {self.name} has no task" if len(self.parts) < 2 else None


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """State of the connector of a table, as far as it is known."""

    sentence: str
    runs: bool = True
    """False only where Kafka Connect says that the connector, or a task of it, does not run."""


NOBODY_ASKED = ConnectorState("whether its connector runs is not known: Kafka Connect was not asked")
RUNS = ConnectorState("its connector runs, says Kafka Connect")


def connector_state(prefixes: Iterable[str], connectors: Mapping[str, Connector] | None) -> ConnectorState:
    """Return the state of the connectors of these prefixes; `connectors` is None without an answer.

    A prefix without a connector is a fault unless a transform may have renamed the topics.
    """
    if connectors is None:
        return NOBODY_ASKED
    wanted = sorted(set(prefixes))
    problems = [connectors[prefix].problem for prefix in wanted if prefix in connectors]
    sentences = [problem for problem in problems if problem]
    missing = [prefix for prefix in wanted if prefix not in connectors]
    if missing and not any("transforms" in connector.settings for connector in connectors.values()):
        sentences.append(f"Kafka Connect has no connector whose topic.prefix is {', '.join(missing)}")
    return ConnectorState("; ".join(sentences), runs=False) if sentences else RUNS


def read_connectors(
    connection: Connection, transport: httpx.BaseTransport | None = None
) -> tuple[Connector, ...]:
    """Return every connector of the Connect cluster, in one request.

    Raises `ConnectUnavailableError` where another try may succeed, else the problem of the connection.
    """
    settings = connect_settings(connection)
    try:
        with http_client(settings, timeout_seconds=_TIMEOUT_SECONDS, transport=transport) as client:
            answer = client.get(f"{settings.url}/connectors", params={"expand": ["info", "status"]})
    except httpx.HTTPError as exc:
        raise ConnectUnavailableError(url=settings.url, reason=reason_of(exc)) from exc
    if answer.status_code in (401, 403):
        raise connection.problem(f"Kafka Connect refuses its login (HTTP {answer.status_code})")
    if answer.status_code == 409 or answer.status_code >= 500:
        raise ConnectUnavailableError(url=settings.url, reason=f"HTTP {answer.status_code}")
    try:
        return tuple(_parse_connector(name, document) for name, document in answer.json().items())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise connection.problem(_describe_stranger(settings, answer)) from None


def connectors_by_prefix(connectors: Iterable[Connector]) -> dict[str, Connector]:
    """Return the connector of each prefix of topics; where two share one, the one that does not run."""
    by_prefix: dict[str, Connector] = {}
    for connector in connectors:
        prefix = connector.prefix
        if prefix is not None and (prefix not in by_prefix or connector.problem):
            by_prefix[prefix] = connector
    return by_prefix


def _parse_connector(name: str, document: Mapping[str, Any]) -> Connector:
    status = document["status"]
    tasks = (_parse_part(f"task {task['id']}", task) for task in status["tasks"])
    parts = (_parse_part("the connector", status["connector"]), *tasks)
    return Connector(name, dict(document["info"]["config"]), parts)


def _parse_part(name: str, document: Mapping[str, Any]) -> Part:
    trace = document.get("trace") or ""
    return Part(name, str(document["state"]), tuple(_EXCEPTION.findall(trace)))


def _describe_stranger(settings: RestSettings, answer: httpx.Response) -> str:
    return f"{settings.url} does not answer like Kafka Connect (HTTP {answer.status_code})"
