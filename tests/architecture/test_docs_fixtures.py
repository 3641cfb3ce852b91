"""What every release must pass is shown by something that exists (`cdc-semantics` §11)."""

from __future__ import annotations

import re

from docs_files import documents  # type: ignore[import-not-found]

SHOWN = re.compile(r"`tests/[\w/]+\.(?:py(?:::test_\w+)?|yaml)`")


def section() -> str:
    rules: str = documents()["include/docs/cdc-semantics.md"]
    return rules.split("\n## 11.")[1].split("\n## 12.")[0]


def fixtures() -> list[str]:
    """As the sentence of the section lists them."""
    (sentence,) = re.findall(r"^Interleaved transactions;.*", section(), re.MULTILINE)
    return str(sentence).removesuffix(".").split("; ")


def shown() -> dict[str, str]:
    rows = re.findall(r"^\| (?!fixture|-)(.+?) \| (.+) \|$", section(), re.MULTILINE)
    return dict(rows)


def test_every_fixture_has_its_line():
    assert list(shown()) == fixtures()


def test_every_line_names_a_case_or_a_test():
    """That these exist, `test_docs_files` says."""
    assert [fixture for fixture, by in shown().items() if not SHOWN.search(by)] == []
