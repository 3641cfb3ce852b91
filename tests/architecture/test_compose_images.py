"""The Dockerfile and the scripts that its images run."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import PurePath

import pytest
from compose_files import ROOT, services  # type: ignore[import-not-found]
from cryptography.fernet import Fernet

from artifacts.lock import read_lock
from docker.draw_secrets import EXAMPLE, names, write

LINES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
STAGES = {line.split()[-1] for line in LINES if line.startswith("FROM ")}


def instructions(name: str) -> list[list[str]]:
    return [line.split()[1:] for line in LINES if line.startswith(f"{name} ")]


def test_every_base_image_is_pinned_or_a_stage():
    bases = [words[0] for words in instructions("FROM")]

    assert [base for base in bases if base not in STAGES and not re.search(r":\d+\.\d+\.\d+", base)] == []


def test_the_python_is_one_that_the_project_supports():
    (python,) = [words[0] for words in instructions("FROM") if words[0].startswith("python:")]

    assert re.match(r"python:3\.1[12]\.", python)


def test_java_is_17_as_in_the_native_stack():
    (java,) = [words[0] for words in instructions("FROM") if words[0].startswith("eclipse-temurin:")]

    assert java.startswith("eclipse-temurin:17.")


def test_what_is_copied_from_the_context_exists():
    copied = [words[:-1] for words in instructions("COPY") if not words[0].startswith("--from")]

    assert [path for paths in copied for path in paths if not (ROOT / path).exists()] == []


def test_what_is_copied_from_a_stage_names_a_stage():
    stages = {word.removeprefix("--from=") for words in instructions("COPY") for word in words if "=" in word}

    assert stages - STAGES == set()


def test_the_context_holds_what_is_copied():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        PurePath(path).parts[0]
        for words in instructions("COPY")
        for path in words[:-1]
        if not words[0].startswith("--from")
    }

    assert copied == kept


def test_packages_are_installed_with_their_hashes():
    installs = [line for line in LINES if " install " in line or " pip " in line]

    assert [line for line in installs if line.count("--require-hashes") < line.count("pip install")] == []
    assert any("-r requirements.lock" in line for line in installs)


def test_the_image_fetches_groups_of_the_lock():
    groups = {group for line in LINES for group in re.findall(r"--group (\S+)", line)}

    assert groups == {"spark", "spark-s3", "debezium", "converter"}
    assert groups <= read_lock().keys()


def test_the_image_does_not_run_as_root():
    (user,) = instructions("USER")

    assert user == ["lakehouse"]


def test_every_build_target_is_a_stage():
    assert {service["build"]["target"] for service in services().values() if "build" in service} <= STAGES


@pytest.mark.parametrize("name", ["connect.sh", "create_databases.sh"])
def test_a_script_is_bash_that_parses_and_may_be_executed(name):
    path = ROOT / "include/docker" / name

    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    assert os.access(path, os.X_OK)


def test_secrets_are_drawn_once_for_their_owner_only(tmp_path):
    target = tmp_path / "local" / "compose.env"

    assert write(target)
    first = target.read_text()
    assert not write(target)
    assert target.read_text() == first
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_every_name_gets_a_value_of_its_own_and_the_fernet_key_is_one(tmp_path):
    target = tmp_path / "compose.env"
    write(target)
    drawn = dict(line.split("=", 1) for line in target.read_text().splitlines())

    assert list(drawn) == names(EXAMPLE.read_text())
    assert len(set(drawn.values())) == len(drawn)
    assert len(drawn["LAKEHOUSE_KAFKA_CLUSTER_ID"]) == 22
    Fernet(drawn["LAKEHOUSE_AIRFLOW_FERNET_KEY"])
