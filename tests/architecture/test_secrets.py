"""Nothing that is committed holds a secret or the address of somebody's package mirror."""

from __future__ import annotations

import re
from pathlib import Path

SECRETS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a token of GitHub": r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
    "a token of Slack": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a bearer token": r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}",
}
MIRRORS = {
    "an index option": r"--(?:extra-)?index-url|--trusted-host|--find-links|^\s*index-url\s*=",
    "the host of a package registry": (
        r"https?://[^\s/\"'`]*(?:pypi|pythonhosted|artifactory|nexus|jfrog|npmjs|maven)[^\s/\"'`]*[/\"'`\s]"
    ),
}
LOGIN_IN_A_URL = r"://[^\s/{}$<>\"'`@:]+:[^\s/{}$<>\"'`@*…]+@"
OWN_NAME = Path(__file__).name


def texts(files: dict[str, Path]) -> dict[str, str]:
    """Every tracked text; this file names the patterns and is left out."""
    found = {}
    for name, path in files.items():
        if path.name != OWN_NAME:
            try:
                found[name] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return found


def hits(found: dict[str, str], patterns: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (name, what)
        for name, text in found.items()
        for what, pattern in patterns.items()
        if re.search(pattern, text, re.MULTILINE)
    ]


def test_no_tracked_file_holds_a_secret(tracked):
    assert hits(texts(tracked), SECRETS) == []


def test_no_tracked_file_names_a_package_mirror(tracked):
    assert hits(texts(tracked), MIRRORS) == []


def test_no_shipped_file_holds_a_login_in_a_url(tracked):
    shipped = {name: path for name, path in tracked.items() if not name.startswith("tests/")}

    assert hits(texts(shipped), {"a login in a URL": LOGIN_IN_A_URL}) == []


def test_no_tracked_file_is_an_environment_or_key_file(tracked):
    refused = {".env", ".pem", ".key", ".p12", ".jks", ".keystore"}

    assert [name for name, path in tracked.items() if path.suffix in refused or path.name in refused] == []
