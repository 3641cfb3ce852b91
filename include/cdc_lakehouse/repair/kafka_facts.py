"""Ask Kafka what it holds of a table's topics; a repair may do without an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.errors import BrokerUnavailableError, MissingConnectionError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts

AskKafka = Callable[[Application, Collection[str]], ClusterFacts]


def ask_kafka(application: Application, topics: Collection[str]) -> ClusterFacts:
    """Return what Kafka says of those topics that exist."""
    settings = librdkafka_settings(application.connection(Role.KAFKA))
    with closing(Cluster(settings)) as cluster:
        return cluster.facts(topics)


def facts_or_reason(ask: AskKafka, application: Application, topics: Collection[str]) -> ClusterFacts | str:
    """Return the facts, or a sentence that says why there are none."""
    try:
        return ask(application, topics)
    except (MissingConnectionError, BrokerUnavailableError) as exc:
        return str(exc)
