"""Kafka Connect with Debezium's plugin and the Avro converter, one distributed worker."""

from __future__ import annotations

import shutil
import signal
import zipfile

import httpx

from artifacts.cache import fetched_folder
from artifacts.unpack import unpacked
from local_stack.component import JVM_FLAGS, Component, plain_environment
from local_stack.kafka import (
    SASL_MECHANISM,
    SECURITY_PROTOCOL,
    Kafka,
    client_jaas,
    kafka_jars,
    render_properties,
)
from local_stack.layout import write_private
from local_stack.process import Launch, ProcessRecord

AVRO_CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
PASSWORD_DATABASE = "SHOP_DATABASE_PASSWORD"  # noqa: S105 - the name of a variable
PASSWORD_REGISTRY = "SHOP_REGISTRY_PASSWORD"  # noqa: S105
"""Variables of Connect's environment that connector settings may name."""
OFFSETS_TOPIC = "_connect_offsets"
_SERVICE = "META-INF/services/org.apache.kafka.connect.storage.Converter"


class Connect(Component):
    name = "connect"
    listener = "connect"
    needs = ("kafka",)
    configured_with = frozenset({"kafka"})
    stops_before = ("postgres", "registry")

    @property
    def address(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        return f"http://{self.site.address('connect')}"

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lay_out_plugins()
        write_private(self.folder / "connect.properties", render_properties(self._settings()))

    def _lay_out_plugins(self) -> None:
        """`service_load` finds plugins by their manifests, which the converter's jars lack: we add one."""
        plugins = self.folder / "plugins"
        shutil.rmtree(plugins, ignore_errors=True)
        for plugin, jars in (
            ("debezium", unpacked("debezium").glob("*/*.jar")),
            ("converter", fetched_folder("converter").glob("*.jar")),
        ):
            (plugins / plugin).mkdir(parents=True)
            for jar in jars:
                (plugins / plugin / jar.name).symlink_to(jar)
        with zipfile.ZipFile(plugins / "converter" / "manifest.jar", "w") as manifest:
            manifest.writestr(_SERVICE, AVRO_CONVERTER + "\n")

    def launch(self) -> Launch:
        log4j = f"-Dlog4j2.configurationFile={(Kafka(self.site).folder / 'log4j2.properties').as_uri()}"
        flags = ["-Xms64m", "-Xmx512m", *JVM_FLAGS, log4j, "-cp", f"{kafka_jars()}/*"]
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return Launch(
            command=[self.site.java.executable, *flags, main, str(self.folder / "connect.properties")],
            environment=plain_environment(
                **{
                    PASSWORD_DATABASE: self.site.secrets.debezium,
                    PASSWORD_REGISTRY: self.site.secrets.registry,
                }
            ),
            folder=self.folder,
            death_signal=signal.SIGKILL,  # its orderly end waits for Kafka, which dies with the same owner
        )

    def is_healthy(self, process: ProcessRecord) -> bool:
        if not process.is_alive:
            return False
        with self.client() as client:
            answer = client.get("/", timeout=5)
            ready = client.get("/connectors", timeout=5)
        ours = answer.json().get("kafka_cluster_id") == Kafka(self.site).cluster_id
        return ours and ready.status_code == httpx.codes.OK

    def _settings(self) -> dict[str, str]:
        login = {
            "security.protocol": SECURITY_PROTOCOL,
            "sasl.mechanism": SASL_MECHANISM,
            "sasl.jaas.config": client_jaas(self.site),
        }
        prefixes = ("", "producer.", "consumer.", "admin.")
        json_converter = "org.apache.kafka.connect.json.JsonConverter"
        return {
            "bootstrap.servers": Kafka(self.site).bootstrap,
            "group.id": "connect",
            "listeners": self.url,
            "rest.advertised.host.name": self.site.address("connect").partition(":")[0],
            "key.converter": json_converter,
            "value.converter": json_converter,
            "config.storage.topic": "_connect_configs",
            "offset.storage.topic": OFFSETS_TOPIC,
            "status.storage.topic": "_connect_status",
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "topic.creation.enable": "true",
            "offset.flush.interval.ms": "1000",
            "scheduled.rebalance.max.delay.ms": "0",
            "task.shutdown.graceful.timeout.ms": "3000",
            "plugin.path": str(self.folder / "plugins"),
            "plugin.discovery": "service_load",
            "config.providers": "env",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
            **{prefix + name: value for prefix in prefixes for name, value in login.items()},
        }
