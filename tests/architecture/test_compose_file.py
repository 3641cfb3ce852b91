"""docker-compose.yml by itself: sound, pinned, on loopback, without secrets."""

from __future__ import annotations

import re

import pytest
from compose_files import ONE_SHOTS, ROOT, compose, environment_of, services  # type: ignore[import-not-found]

PINNED = re.compile(r"^[a-z0-9./-]+:\d+\.\d+(\.\d+)?[a-z0-9._-]*$")
LOOPBACK_PORT = re.compile(r"^127\.0\.0\.1:\d+:\d+$")
SECRET_NAME = re.compile(
    r"PASSWORD|SECRET|FERNET|SQL_ALCHEMY_CONN|USERS_LAKEHOUSE|JAAS|CONN_LAKEHOUSE_(?!STORAGE|CONNECT)"
)
REFERENCE = re.compile(r"(?<!\$)\$\{(\w+):\?\}")
NAMES = sorted(services())


def test_the_file_has_the_parts_of_a_compose_file_only():
    known = {"name", "services", "volumes", "networks", "configs", "secrets"}

    assert {key for key in compose() if not key.startswith("x-")} - known == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_service_has_keys_that_compose_knows(name):
    known = {
        "image", "build", "init", "restart", "environment", "volumes", "depends_on", "command",
        "ports", "profiles", "healthcheck", "hostname", "stop_signal", "stop_grace_period",
    }  # fmt: skip

    assert set(services()[name]) - known == set()


@pytest.mark.parametrize("name", NAMES)
def test_an_image_is_pinned(name):
    assert PINNED.match(services()[name]["image"])


@pytest.mark.parametrize("name", NAMES)
def test_what_a_service_depends_on_exists_and_has_the_condition_that_fits(name):
    for needed, how in services()[name].get("depends_on", {}).items():
        wanted = "service_completed_successfully" if needed in ONE_SHOTS else "service_healthy"
        assert needed in services()
        assert how == {"condition": wanted}


@pytest.mark.parametrize("name", sorted(set(NAMES) - ONE_SHOTS))
def test_a_server_has_a_health_check(name):
    check = services()[name]["healthcheck"]

    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "retries", "start_period"} <= check.keys()


@pytest.mark.parametrize("name", sorted(ONE_SHOTS))
def test_a_step_that_ends_is_not_started_again_after_success(name):
    assert services()[name]["restart"] == "on-failure"
    assert "healthcheck" not in services()[name]


@pytest.mark.parametrize("name", NAMES)
def test_ports_are_bound_to_loopback(name):
    assert [port for port in services()[name].get("ports", []) if not LOOPBACK_PORT.match(port)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_an_environment_is_text(name):
    assert {key for key, value in environment_of(name).items() if not isinstance(value, str)} == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_comes_from_the_environment_file(name):
    secrets = {
        key: value
        for key, value in environment_of(name).items()
        if SECRET_NAME.search(key) and not key.endswith(("PLAIN_TEXT", "PASSWORDS_FILE"))
    }

    assert [key for key, value in secrets.items() if not REFERENCE.search(value)] == []


def test_every_variable_is_in_the_example_and_every_line_of_the_example_is_used():
    used = set(REFERENCE.findall((ROOT / "docker-compose.yml").read_text()))
    lines = (ROOT / "include/docker/env.example").read_text().splitlines()

    assert {line.removesuffix("=") for line in lines if not line.startswith("#")} == used


@pytest.mark.parametrize("name", NAMES)
def test_mounted_volumes_are_declared_and_mounted_files_exist(name):
    for mount in services()[name].get("volumes", []):
        source = mount.split(":")[0]
        assert (ROOT / source).exists() if source.startswith(".") else source in compose()["volumes"]


def test_every_declared_volume_is_mounted():
    mounted = {mount.split(":")[0] for service in services().values() for mount in service.get("volumes", [])}

    assert set(compose()["volumes"]) - mounted == set()


def test_airflow_and_spark_share_one_image_and_the_lake():
    sharing = {name for name, service in services().items() if "lake:/lake" in service.get("volumes", [])}

    assert {"airflow-scheduler", "spark-worker"} <= sharing
    assert {services()[name]["image"] for name in [*sharing, "spark-master"]} == {"cdc-lakehouse:0.1.0"}


def test_the_dependencies_have_no_circle():
    left = {name: set(service.get("depends_on", {})) for name, service in services().items()}
    while ready := {name for name, needs in left.items() if not needs & left.keys()}:
        left = {name: needs for name, needs in left.items() if name not in ready}

    assert left == {}
