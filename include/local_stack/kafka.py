"""Kafka as one KRaft node with a login, and the class path that Connect shares with it."""

from __future__ import annotations

import logging
import signal
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from confluent_kafka.admin import AdminClient

from artifacts.cache import fetched_folder
from local_stack.component import JVM_FLAGS, Component, Site, plain_environment
from local_stack.layout import write_private
from local_stack.process import Launch, ProcessRecord

USER = "lakehouse"
SECURITY_PROTOCOL = "SASL_PLAINTEXT"
SASL_MECHANISM = "PLAIN"
_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SILENT = logging.getLogger("local_stack.kafka.client")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.configs.name = org.apache.kafka.common.config.AbstractConfig
logger.configs.level = warn
"""


class Kafka(Component):
    name = "kafka"
    listener = "kafka"

    @property
    def address(self) -> str:
        return self.bootstrap

    @property
    def bootstrap(self) -> str:
        return self.site.address("kafka")

    @property
    def cluster_id(self) -> str:
        return (self.folder / "cluster-id").read_text().strip()

    def client_settings(self) -> dict[str, str]:
        """For confluent-kafka; the password is in it."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": SECURITY_PROTOCOL,
            "sasl.mechanism": SASL_MECHANISM,
            "sasl.username": USER,
            "sasl.password": self.site.secrets.kafka,
        }

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.properties").write_text(_LOGGING)
        if not (self.folder / "cluster-id").exists():
            new_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            write_private(
                self.folder / "cluster-id", new_id.replace("-", "A")
            )  # a leading dash looks like an option
        write_private(self.folder / "server.properties", render_properties(self._settings()))
        if not (self.folder / "data" / "meta.properties").exists():
            tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", self.cluster_id]
            flags = [*JVM_FLAGS, "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars()}/*"]
            command = [self.site.java.executable, *flags, *tool, "-c", str(self.folder / "server.properties")]
            self.run_tool(Launch(command, plain_environment(), self.folder, signal.SIGKILL))

    def launch(self) -> Launch:
        log4j = f"-Dlog4j2.configurationFile={(self.folder / 'log4j2.properties').as_uri()}"
        flags = ["-Xms64m", "-Xmx384m", *JVM_FLAGS, log4j, "-cp", f"{kafka_jars()}/*"]
        return Launch(
            command=[
                *(self.site.java.executable, *flags, "kafka.Kafka"),
                str(self.folder / "server.properties"),
            ],
            environment=plain_environment(),
            folder=self.folder,
        )

    def is_healthy(self, process: ProcessRecord) -> bool:
        if not process.is_alive:
            return False
        settings = {**self.client_settings(), "log_level": 0, "socket.connection.setup.timeout.ms": 1000}
        metadata = AdminClient(settings, logger=_SILENT).list_topics(timeout=2)
        return bool(metadata.cluster_id == self.cluster_id)

    def _settings(self) -> dict[str, str]:
        controller = self.site.address("kafka-controller")
        password = self.site.secrets.kafka
        users = f'username="{USER}" password="{password}" user_{USER}="{password}"'
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"CLIENT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"CLIENT://{self.bootstrap}",
            "listener.security.protocol.map": f"CLIENT:{SECURITY_PROTOCOL},CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "CLIENT",
            "sasl.mechanism.inter.broker.protocol": SASL_MECHANISM,
            "sasl.enabled.mechanisms": SASL_MECHANISM,
            "listener.name.client.plain.sasl.jaas.config": f"{_LOGIN_MODULE} required {users};",
            "log.dirs": str(self.folder / "data"),
            "num.partitions": "1",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "log.cleaner.dedupe.buffer.size": "16777216",
            "default.replication.factor": "1",
            "broker.session.timeout.ms": "6000",  # how long a killed broker blocks its successor
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
        }


def client_jaas(site: Site) -> str:
    """For Java clients; belongs into files of mode 0600 only."""
    return f'{_LOGIN_MODULE} required username="{USER}" password="{site.secrets.kafka}";'


def kafka_jars() -> Path:
    return fetched_folder("kafka")


def render_properties(settings: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())
