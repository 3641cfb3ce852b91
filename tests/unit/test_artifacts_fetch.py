"""Nothing but whole files gets into the cache; a repository is a folder here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from artifacts import fetch as fetching
from artifacts.cache import broken_artifacts, cache_root, fetched_folder, group_folder
from artifacts.errors import ChecksumError, NotFetchedError
from artifacts.ivy import module_xml, settings_xml, why
from artifacts.java import Java
from artifacts.lock import Artifact, Group


def artifact(name: str, content: bytes) -> Artifact:
    return Artifact(
        "demo", "org.demo", name, "1", "jar", None, len(content), hashlib.sha256(content).hexdigest()
    )


GOOD, OTHER = artifact("good", b"good"), artifact("other", b"other")
GROUP = Group("demo", (GOOD, OTHER))


class Repository:
    """Answers each request for a file with its next content."""

    def __init__(self, **contents: list[bytes]) -> None:
        self.contents = contents
        self.requests: list[str] = []

    def download(self, artifacts, *, scratch: Path, java: Java, cancel) -> Path:
        scratch.mkdir(parents=True)
        for each in artifacts:
            self.requests.append(each.name)
            (scratch / each.file_name).write_bytes(self.contents[each.name].pop(0))
        return scratch


@pytest.fixture
def repository(monkeypatch, tmp_path):
    monkeypatch.setenv("CDC_LAKEHOUSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "find_java", lambda: Java(tmp_path, "17.0.1"))
    source = Repository(good=[b"good", b"good"], other=[b"other", b"other"])
    monkeypatch.setattr(fetching, "download", source.download)
    return source


def test_a_second_fetch_asks_for_nothing(repository):
    assert fetching.fetch([GROUP]) == 2
    assert fetching.fetch([GROUP]) == 0
    assert repository.requests == ["good", "other"]


def test_a_file_changed_in_the_cache_is_fetched_again(repository):
    fetching.fetch([GROUP])
    (group_folder(GROUP) / "good-1.jar").write_bytes(b"evil")
    assert fetching.fetch([GROUP]) == 1
    assert broken_artifacts(GROUP) == ()


def test_a_broken_download_is_tried_once_more(repository):
    repository.contents["good"] = [b"goo", b"good"]
    assert fetching.fetch([GROUP]) == 2
    assert repository.requests.count("good") == 2


def test_a_file_that_stays_wrong_is_never_installed(repository):
    repository.contents["good"] = [b"evil", b"evil"]
    with pytest.raises(ChecksumError, match=r"good-1\.jar"):
        fetching.fetch([GROUP])
    assert not (group_folder(GROUP) / "good-1.jar").exists()


def test_a_stranger_in_the_folder_is_removed(repository):
    fetching.fetch([GROUP])
    (group_folder(GROUP) / "stranger.jar").touch()
    fetching.fetch([GROUP])
    assert sorted(path.name for path in group_folder(GROUP).iterdir()) == ["good-1.jar", "other-1.jar"]


def test_nothing_is_left_beside_the_groups(repository):
    fetching.fetch([GROUP])
    assert not list(cache_root().glob(".fetch-*"))


def test_a_group_that_is_not_fetched_names_the_command(repository):
    with pytest.raises(NotFetchedError, match="artifacts fetch --group spark"):
        fetched_folder("spark")


def test_an_own_repository_root_ends_with_one_slash():
    assert 'root="https://files.example.org/repo/"' in settings_xml("https://files.example.org/repo")


def test_without_an_own_root_no_host_is_named():
    assert "http" not in settings_xml(None)


def test_a_classifier_needs_its_type():
    plugin = Artifact("g", "io.debezium", "connector", "3", "tar.gz", "plugin", 1, "a" * 64)
    assert 'type="tar.gz" ext="tar.gz" m:classifier="plugin"' in module_xml([plugin])


def test_a_reason_is_taken_from_a_long_log():
    assert "no network" in why("...\njava.net.UnknownHostException: somewhere\n...")
