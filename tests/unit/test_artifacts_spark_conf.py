"""Spark's settings and its class archive, without a JVM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artifacts.appcds import archive_key
from artifacts.java import Java
from artifacts.spark_files import SENSITIVE, driver_flags, render_defaults, spark_settings


@pytest.fixture
def settings() -> dict[str, str]:
    return spark_settings(
        driver_class_path=[Path("/a.jar"), Path("/b.jar")],
        executor_class_path=[Path("/a.jar")],
        flags=["-Xone", "-Dtwo=2"],
        warehouse=Path("/w"),
    )


def test_a_setting_is_one_line(settings):
    lines = render_defaults(settings).splitlines()
    assert len(lines) == len(settings)
    assert "spark.driver.extraClassPath /a.jar:/b.jar" in lines
    assert "spark.driver.extraJavaOptions -Xone -Dtwo=2" in lines


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config",
        "basic.auth.user.info",
        "fs.s3a.access.key",
        "ssl.keystore.location",
        "apiKey",
    ],
)
def test_names_of_secrets_are_covered(settings, name):
    assert re.search(settings["spark.redaction.regex"], name)
    assert re.search(settings["spark.sql.redaction.options.regex"], name)


def test_an_address_with_a_password_is_covered():
    assert re.search(SENSITIVE, "http://user:pw@host/path")
    assert not re.search(SENSITIVE, "http://host/path")


@pytest.mark.parametrize(
    ("quick_start", "flags"),
    [(True, "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"), (False, None)],
)
def test_long_runs_keep_the_second_compiler(quick_start, flags):
    written = spark_settings(
        driver_class_path=[],
        executor_class_path=[],
        flags=["-Xone"],
        warehouse=Path("/w"),
        quick_start=quick_start,
    )

    assert written.get("spark.driver.defaultJavaOptions") == flags
    assert written["spark.driver.extraJavaOptions"] == "-Xone"


def test_an_archive_is_named_only_when_there_is_one():
    flags = driver_flags(logging_file=Path("/l"), archive=Path("/c/x.jsa"))
    assert "-XX:SharedArchiveFile=/c/x.jsa" in flags


@pytest.mark.parametrize(
    ("jars", "java"),
    [
        ([("/b.jar", 1, 1), ("/a.jar", 1, 1)], "17"),
        ([("/a.jar", 1, 2), ("/b.jar", 1, 1)], "17"),
        ([("/a.jar", 1, 1), ("/b.jar", 1, 1)], "17.1"),
    ],
)
def test_another_order_time_or_java_is_another_archive(jars, java):
    known = archive_key([("/a.jar", 1, 1), ("/b.jar", 1, 1)], java_version="17", collector="serial")
    assert archive_key(jars, java_version=java, collector="serial") != known


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("17", 17), ("21-ea", 21), ("17+35", 17)])
def test_the_major_version_of_java(version, major):
    assert Java(Path("/j"), version).major == major
