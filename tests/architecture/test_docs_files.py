"""What the documents name exists: targets, files, links, tests, versions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import duckdb
import pytest
import yaml
from docs_files import ROOT, documents, prose  # type: ignore[import-not-found]

NAMES = sorted(documents())
ROOTED = ("include/", "tests/", "dags/", "plugins/", "spark_jobs/", ".ci/")
PACKAGE_ROOMS = ("avro/", "debezium/", "bronze/", "silver/", "config/", "lake/", "registry/")
TEMPORARY = re.compile(r"[<*{]|/billing\.yaml$|/cdc_billing\.py$|^include/pipelines/$")
QUOTED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
TARGET = re.compile(r"\bmake ((?:[a-z][a-z0-9-]*)(?: [a-z]+-[a-z0-9-]+)*)")


def makefile_targets() -> set[str]:
    """Those with a help text."""
    return set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def named_targets(text: str) -> set[str]:
    """In fences and in back-ticks; `make` in a sentence is a verb."""
    code = [*re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL), *QUOTED.findall(prose(text))]
    return {target for each in code for found in TARGET.findall(each) for target in found.split()}


def named_paths(text: str) -> set[str]:
    """Paths in back-ticks that begin in a folder of ours, or in a room of the package."""
    paths = {found.split("::")[0] for found in QUOTED.findall(prose(text)) if " " not in found}
    rooted = {path for path in paths if path.startswith(ROOTED)}
    rooms = {
        f"include/cdc_lakehouse/{path}"
        for path in paths
        if path.startswith(PACKAGE_ROOMS) and path.endswith(".py")
    }
    return {path for path in rooted | rooms if not TEMPORARY.search(path)}


@pytest.mark.parametrize("name", NAMES)
def test_every_target_that_a_document_names_is_in_the_makefile(name):
    assert named_targets(documents()[name]) - makefile_targets() == set()


def test_every_target_with_a_help_text_is_in_the_readme():
    assert makefile_targets() - named_targets(documents()["README.md"]) == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_path_that_a_document_names_exists(name):
    assert {path for path in named_paths(documents()[name]) if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_to_a_file(name):
    base = (ROOT / name).parent
    links = [link.split("#")[0] for link in LINK.findall(prose(documents()[name])) if "://" not in link]

    assert [link for link in links if link and not (base / link).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_test_that_a_document_names_is_defined(name):
    cited = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", documents()[name])
    missing = [test for path, test in cited if f"def {test}(" not in (ROOT / path).read_text()]

    assert missing == []


@pytest.mark.parametrize("name", NAMES)
def test_a_document_names_no_path_of_one_machine(name):
    assert re.findall(r"(?<![\w.~-])/(?:home|root|Users|work|tmp)/\S*", documents()[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_document_names_no_host_of_a_package_registry(name):
    hosts = (
        r"pypi\.org|pythonhosted|repo1?\.maven|maven\.org|artifactory|nexus|jfrog|npmjs|docker\.io|quay\.io"
    )

    assert re.findall(hosts, documents()[name]) == []


def test_every_module_of_the_way_of_a_record_is_in_the_architecture():
    modules = re.findall(r"`([\w/]+\.py)`", documents()["include/docs/architecture.md"].split("## 9.")[1])

    assert len(modules) > 10


def test_the_readme_has_the_versions_that_are_pinned():
    rows = dict(re.findall(r"^\| ([\w, ]+?) \| ([\w., ]+) \|$", documents()["README.md"], re.MULTILINE))
    pins = dict(re.findall(r"^([a-z-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    lock = (ROOT / "include/artifacts/artifacts.lock").read_text()

    assert rows["Airflow"] == pins["apache-airflow"]
    assert rows["Spark, PySpark"] == pins["pyspark"]
    assert rows["Delta"] == pins["delta-spark"]
    assert services["kafka"]["image"].endswith(f":{rows['Kafka and Connect of the stack']}")
    assert services["registry"]["image"].endswith(f":{rows['Apicurio Registry']}")
    assert f":{rows['PostgreSQL of the stack']}-" in services["postgres"]["image"]
    assert f"debezium-connector-postgres {rows['Debezium']} " in lock


def test_decisions_are_numbered_once_and_have_three_parts():
    paths = sorted((ROOT / "include/docs/decisions").glob("*.md"))
    headings = ["## Context", "## Decision", "## Consequences"]

    numbers = [path.name[:4] for path in paths]

    assert numbers == sorted(set(numbers))
    assert [path.name for path in paths if _headings(path) != headings] == []
    assert [path.name for path in paths if not path.read_text().startswith(f"# {path.name[:4]} ")] == []


def _headings(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("## ")]


def test_every_query_of_the_documents_parses():
    """As `make sql` would parse it, before any name is looked up."""
    queries = [
        query
        for text in documents().values()
        for query in re.findall(
            r"(?:`|QUERY=')(select [^`']+|[^`']*\bselect [^`']+ from [^`']+)(?:`|')", text
        )
        if not re.search(r"[<…]", query)
    ]
    refused = {}
    for query in queries:
        try:
            duckdb.extract_statements(query)
        except duckdb.Error as problem:
            refused[query] = str(problem)

    assert len(queries) >= 3
    assert refused == {}


def test_make_run_names_the_jobs_where_there_is_none_of_that_name():
    """The check that stands before the job, as make would run it."""
    made = subprocess.run(
        ["make", "--dry-run", "-o", ".venv/.fetched", "run", "JOB=nope"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    check = next(line for line in made.stdout.splitlines() if line.startswith("test "))
    answer = subprocess.run(["bash", "-c", check], capture_output=True, text=True, check=False)

    assert answer.returncode == 78
    assert answer.stderr.startswith(
        "there is no job of that name; JOB is one of: bronze_ingest clean_checkpoints "
    )
