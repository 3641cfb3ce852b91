"""Modules stay small, named by what they hold, and say what that is."""

from __future__ import annotations

import ast
from pathlib import Path, PurePath

MOST_LINES = 400
MOST_FUNCTION_LINES = 50
MOST_ENTRY_POINT_LINES = 15
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "base"}
SHADOWED_NAMES = {"logging", "config", "types", "json", "time", "datetime", "email", "queue"}
PACKAGE = "include/cdc_lakehouse/"
MAY_READ_THE_ENVIRONMENT = (
    f"{PACKAGE}config/settings.py",
    f"{PACKAGE}config/tls_settings.py",  # writes one variable, for a library that takes nothing else
    f"{PACKAGE}application/",
    f"{PACKAGE}orchestration/",
)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions_of(path: Path) -> list[tuple[str, int]]:
    """Name and length of every function, methods and inner ones included."""
    return [
        (node.name, (node.end_lineno or 0) - node.lineno + 1)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_no_module_is_longer_than_400_lines(shipped):
    assert [(name, lines_of(path)) for name, path in shipped.items() if lines_of(path) > MOST_LINES] == []


def test_no_function_is_longer_than_50_lines(shipped):
    found = [(name, *function) for name, path in shipped.items() for function in functions_of(path)]

    assert [function for function in found if function[2] > MOST_FUNCTION_LINES] == []


def test_every_module_says_in_its_first_line_what_it_holds(python_files):
    assert [name for name, path in python_files.items() if not ast.get_docstring(tree_of(path))] == []


def test_no_module_has_a_name_that_says_nothing(python_files):
    parts = {name: set(PurePath(name).with_suffix("").parts) for name in python_files}

    assert [name for name, found in parts.items() if found & EMPTY_NAMES] == []


def test_spark_jobs_are_entry_points_only(shipped):
    jobs = {name: path for name, path in shipped.items() if name.startswith("spark_jobs/")}

    assert [name for name, path in jobs.items() if lines_of(path) > MOST_ENTRY_POINT_LINES] == []


def test_spark_jobs_shadow_no_module_on_the_driver(shipped):
    jobs = [path.stem for name, path in shipped.items() if name.startswith("spark_jobs/")]

    assert [stem for stem in jobs if stem in SHADOWED_NAMES] == []


def test_plugins_are_one_flat_prefixed_file(shipped):
    plugins = [name for name in shipped if name.startswith("plugins/")]

    assert plugins == ["plugins/cdc_lakehouse_plugin.py"]


def test_the_environment_is_read_at_the_edge_only(shipped):
    readers = [
        name
        for name, path in shipped.items()
        if name.startswith(PACKAGE) and any(word in path.read_text() for word in ("os.environ", "os.getenv"))
    ]

    assert [name for name in readers if not name.startswith(MAY_READ_THE_ENVIRONMENT)] == []
