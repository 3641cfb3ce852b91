"""Airflow connections for a job: resolved when it starts, handed over through its environment only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import (
    ENV_CONNECTION_CONNECT,
    ENV_CONNECTION_KAFKA,
    ENV_CONNECTION_REGISTRY,
    ENV_CONNECTION_SOURCE,
    ENV_CONNECTION_STORAGE,
    ENV_RESULT,
    ENV_SPARK_SECRET,
    Job,
)
from cdc_lakehouse.errors import MissingConnectionError, NotSupportedYetError

_NOT_INHERITED = ("AIRFLOW_", "_AIRFLOW_", "CDC_LAKEHOUSE_CONN_")
"""The worker's own configuration holds the Fernet key and other connections; no job needs them."""


def connection_ids(job: Job, connections: Connections) -> dict[str, str]:
    """Environment variable -> connection id. Who decodes asks the registry; Kafka is asked by who reads it,
    and by who must know how far it goes."""
    needed = {ENV_CONNECTION_STORAGE: connections.storage}
    if job in (Job.BRONZE_INGEST, Job.QUARANTINE_REPLAY, Job.QUARANTINE_REPAIR, Job.RESYNC):
        needed[ENV_CONNECTION_REGISTRY] = connections.registry
    if job in (Job.VERIFY, Job.RESYNC):
        needed[ENV_CONNECTION_SOURCE] = connections.source
    if job in (Job.BRONZE_INGEST, Job.VERIFY, Job.RESYNC):
        needed[ENV_CONNECTION_KAFKA] = connections.kafka
    return needed


def wished_connection_ids(job: Job, connections: Connections) -> dict[str, str]:
    """Return the connections that a job can do without: an ingest asks the source what is confirmed, and
    Kafka Connect whether the connector runs; repairs ask Kafka what it still holds; a check names what is
    missing."""
    if job is Job.RESYNC:
        return {ENV_CONNECTION_CONNECT: connections.connect}
    if job in (Job.REWIND, Job.RETIRE, Job.ERASE):
        return {ENV_CONNECTION_KAFKA: connections.kafka}
    if job is Job.PREFLIGHT:
        return {
            ENV_CONNECTION_KAFKA: connections.kafka,
            ENV_CONNECTION_REGISTRY: connections.registry,
            ENV_CONNECTION_SOURCE: connections.source,
            ENV_CONNECTION_CONNECT: connections.connect,
        }
    if job is not Job.BRONZE_INGEST:
        return {}
    return {ENV_CONNECTION_SOURCE: connections.source, ENV_CONNECTION_CONNECT: connections.connect}


def child_environment(
    inherited: Mapping[str, str],
    *,
    ids: Mapping[str, str],
    wished: Mapping[str, str] | None = None,
    result_file: str,
) -> dict[str, str]:
    """What spark-submit gets: the worker's environment without Airflow's secrets, plus this job's.

    Of the connections that are only `wished` for those that Airflow knows.
    """
    kept = {name: value for name, value in inherited.items() if not name.startswith(_NOT_INHERITED)}
    resolved = {variable: _as_json(_connection(conn_id)) for variable, conn_id in ids.items()}
    for variable, conn_id in (wished or {}).items():
        with suppress(MissingConnectionError):
            resolved[variable] = _as_json(_connection(conn_id))
    return {**kept, **resolved, ENV_RESULT: result_file}


def check_spark_connection(conn_id: str) -> None:
    """The provider takes `yarn` for an unknown connection, and cluster mode hides the exit code."""
    connection = _connection(conn_id)
    if connection.extra_dejson.get("deploy-mode", "client") != "client":
        raise NotSupportedYetError(feature=f"a deploy mode other than `client` (connection {conn_id})")
    if not connection.host:
        raise MissingConnectionError(connection=conn_id, problem="it has no host; a master is like local[2]")


def spark_secret(conn_id: str) -> dict[str, str]:
    """The password of the connection, as the environment of a driver has it; nothing where it has none."""
    password = _connection(conn_id).password
    return {ENV_SPARK_SECRET: password} if password else {}


def _connection(conn_id: str) -> Connection:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise MissingConnectionError(connection=conn_id, problem="Airflow does not know it") from error


def _as_json(connection: Connection) -> str:
    return json.dumps(
        {
            "host": connection.host,
            "port": connection.port,
            "login": connection.login,
            "password": connection.password,
            "extra": connection.extra_dejson,
        }
    )
