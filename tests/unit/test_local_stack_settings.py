"""What the stack tells jobs, Airflow and Connect, and where secrets may stand."""

from __future__ import annotations

import json
import stat
from dataclasses import asdict
from pathlib import Path

import pytest

from artifacts.java import Java
from local_stack.airflow import pools_of
from local_stack.airflow_settings import airflow_environment
from local_stack.component import Site
from local_stack.connector import connector_settings
from local_stack.environment import job_environment, open_lake, tool_environment
from local_stack.layout import Layout
from local_stack.object_store import ObjectStore
from local_stack.ports import OBJECT_STORE, USUAL
from local_stack.secrets_file import Secrets


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(Layout(tmp_path), USUAL, Secrets.drawn(), Java(Path("/java"), "17"))


def secrets_of(site: Site) -> list[str]:
    return [getattr(site.secrets, name) for name in Secrets.__slots__]


def test_a_job_finds_its_connections(site):
    environment = job_environment(site)
    kafka = json.loads(environment["CDC_LAKEHOUSE_CONN_KAFKA"])
    assert kafka["host"] == "127.0.0.1:9092"
    assert kafka["password"] == site.secrets.kafka
    assert json.loads(environment["CDC_LAKEHOUSE_CONN_REGISTRY"])["host"].endswith("/apis/ccompat/v7")
    assert json.loads(environment["CDC_LAKEHOUSE_CONN_STORAGE"])["extra"]["root"] == site.layout.lake.as_uri()


def test_with_an_object_store_the_lake_is_a_bucket(tmp_path):
    ports = {**USUAL, **OBJECT_STORE}
    site = Site(Layout(tmp_path), ports, Secrets.drawn(), Java(Path("/java"), "17"), object_store=True)
    storage = json.loads(job_environment(site)["CDC_LAKEHOUSE_CONN_STORAGE"])

    assert storage["extra"]["root"] == open_lake(site) == "s3a://lakehouse/lake"
    assert storage["extra"]["endpoint"] == "http://127.0.0.1:8333"
    assert storage["password"] == site.secrets.object_store


def test_the_object_store_listens_on_loopback_and_names_no_secret(tmp_path):
    ports = {**USUAL, **OBJECT_STORE}
    site = Site(Layout(tmp_path), ports, Secrets.drawn(), Java(Path("/java"), "17"), object_store=True)
    command = ObjectStore(site).launch().command

    assert {"-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"} <= set(command)
    assert not any(secret in " ".join(command) for secret in secrets_of(site))


def test_secrets_of_an_earlier_release_are_kept_and_new_ones_drawn(tmp_path):
    path = tmp_path / "secrets.json"
    before = json.loads(json.dumps(asdict(Secrets.drawn())))
    del before["object_store"]
    path.write_text(json.dumps(before))

    found = asdict(Secrets.kept_in(path))

    assert {name: found[name] for name in before} == before
    assert found["object_store"] == Secrets.kept_in(path).object_store


def test_airflow_gets_the_same_connections(site):
    known = airflow_environment(site)
    job = json.loads(job_environment(site)["CDC_LAKEHOUSE_CONN_KAFKA"])
    assert json.loads(known["AIRFLOW_CONN_LAKEHOUSE_KAFKA"]) == {"conn_type": "generic", **job}


def test_airflow_inherits_no_setting(site, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW__CORE__UNIT_TEST_MODE", "True")
    known = airflow_environment(site)
    assert known["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert "AIRFLOW__CORE__UNIT_TEST_MODE" not in known


def test_the_connector_names_secrets_but_holds_none(site):
    text = json.dumps(connector_settings(site))
    assert not any(secret in text for secret in secrets_of(site))
    assert "${env:" in text


def test_the_connector_captures_every_table_of_the_shop(site):
    """Also tables that do not exist yet: neither the connector nor the publication lists them."""
    settings = connector_settings(site)
    assert settings["schema.include.list"] == "public"
    assert settings["publication.autocreate.mode"] == "disabled"
    assert not {name for name in settings if name.startswith("table.")}


def test_tools_need_no_secret(site):
    text = json.dumps(tool_environment(site))
    assert not any(secret in text for secret in secrets_of(site))


def test_secrets_are_drawn_once_and_private(tmp_path):
    path = tmp_path / "secrets.json"
    assert Secrets.kept_in(path) == Secrets.kept_in(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_secrets_are_not_printed(site):
    assert not any(secret in repr(site) for secret in secrets_of(site))


def test_each_pipeline_gets_a_pool(tmp_path):
    (tmp_path / "shop.yaml").touch()
    assert json.loads(pools_of(tmp_path))["cdc_shop"]["slots"] == 2


def test_the_folder_can_be_moved():
    assert Layout.default({"CDC_LAKEHOUSE_LOCAL": "/elsewhere"}).root == Path("/elsewhere")
