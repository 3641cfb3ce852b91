"""What jobs and Airflow are told about the stack: addresses, logins, where Java and the settings lie."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from artifacts.cache import ENV_CACHE
from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.config.storage_settings import storage_settings
from cdc_lakehouse.contract import (
    ENV_CONNECTION_CONNECT,
    ENV_CONNECTION_KAFKA,
    ENV_CONNECTION_REGISTRY,
    ENV_CONNECTION_SOURCE,
    ENV_CONNECTION_STORAGE,
    ENV_PIPELINES,
)
from cdc_lakehouse.lake.filesystem import introduce
from local_stack import kafka, object_store, registry
from local_stack.component import Site
from local_stack.connect import OFFSETS_TOPIC, Connect
from local_stack.connector import SLOT
from local_stack.ports import LOOPBACK
from local_stack.postgres import SHOP, VERIFIER

Connection = Mapping[str, object]


def connections(site: Site) -> dict[str, Connection]:
    """Airflow's connection id -> the connection; with the fields that it needs."""
    return {
        "lakehouse_kafka": {
            "conn_type": "generic",
            "host": kafka.Kafka(site).bootstrap,
            "login": kafka.USER,
            "password": site.secrets.kafka,
            "extra": {"security_protocol": kafka.SECURITY_PROTOCOL, "sasl_mechanism": kafka.SASL_MECHANISM},
        },
        "lakehouse_registry": {
            "conn_type": "generic",
            "host": registry.Registry(site).url,
            "login": registry.USER,
            "password": site.secrets.registry,
        },
        "lakehouse_storage": {"conn_type": "generic", **_storage(site)},
        "lakehouse_source": {
            "conn_type": "generic",
            "host": LOOPBACK,
            "port": site.ports["postgres"],
            "login": VERIFIER,
            "password": site.secrets.verify,
            "extra": {"database": SHOP, "slot": SLOT, "offsets_topic": OFFSETS_TOPIC},
        },
        "lakehouse_connect": {"conn_type": "generic", "host": Connect(site).url},
        "spark_default": {"conn_type": "spark", "host": "local[2]"},
    }


def _storage(site: Site) -> Connection:
    if not site.object_store:
        return {"extra": {"root": site.layout.lake.as_uri()}}
    endpoint = object_store.ObjectStore(site).endpoint
    return {
        "login": object_store.USER,
        "password": site.secrets.object_store,
        "extra": {"root": object_store.ROOT, "endpoint": endpoint, "region": object_store.REGION},
    }


def open_lake(site: Site) -> str:
    """The lake's root; this process can read it from here on."""
    connection = connection_from_environment(Role.STORAGE, job_environment(site))
    settings = storage_settings(connection)
    introduce(settings)
    return settings.root


def job_environment(site: Site) -> dict[str, str]:
    """For spark-submit and for tests; passwords are in it."""
    known = connections(site)
    named = {
        ENV_CONNECTION_KAFKA: known["lakehouse_kafka"],
        ENV_CONNECTION_REGISTRY: known["lakehouse_registry"],
        ENV_CONNECTION_STORAGE: known["lakehouse_storage"],
        ENV_CONNECTION_SOURCE: known["lakehouse_source"],
        ENV_CONNECTION_CONNECT: known["lakehouse_connect"],
    }
    return {**tool_environment(site), **{name: _for_a_job(connection) for name, connection in named.items()}}


def tool_environment(site: Site) -> dict[str, str]:
    """Without any secret."""
    cache = {ENV_CACHE: os.environ[ENV_CACHE]} if os.environ.get(ENV_CACHE) else {}
    return {
        "JAVA_HOME": str(site.java.home),
        "SPARK_CONF_DIR": str(site.layout.spark_conf),
        "PYTHONPATH": str(site.layout.include),
        "PYSPARK_PYTHON": sys.executable,
        ENV_PIPELINES: str(site.layout.pipelines),
        **cache,
    }


def _for_a_job(connection: Connection) -> str:
    return json.dumps({name: value for name, value in connection.items() if name != "conn_type"})
