"""The committed jar is what its sources say; `tests/s3` builds it again where there is a compiler."""

from __future__ import annotations

import zipfile

from artifacts.log_store import COMMITTED, SOURCES, manifest_of, sources_digest
from artifacts.spark_files import LOG_STORES


def test_the_jar_was_built_from_the_sources_beside_it():
    """After a change of the sources: `make log-store`."""
    assert manifest_of(COMMITTED)["Sources"] == sources_digest()


def test_the_jar_has_a_class_for_each_source_and_nothing_else():
    with zipfile.ZipFile(COMMITTED) as jar:
        packed = jar.namelist()

    sources = sorted(str(path.relative_to(SOURCES).with_suffix(".class")) for path in SOURCES.rglob("*.java"))
    assert packed == ["META-INF/MANIFEST.MF", *sources]


def test_no_entry_tells_when_or_by_whom_it_was_packed():
    with zipfile.ZipFile(COMMITTED) as jar:
        told = {
            (entry.date_time, entry.compress_type, entry.external_attr, entry.extra)
            for entry in jar.infolist()
        }

    assert told == {((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED, 0o644 << 16, b"")}


def test_the_settings_name_classes_of_the_jar():
    with zipfile.ZipFile(COMMITTED) as jar:
        packed = {name.removesuffix(".class").replace("/", ".") for name in jar.namelist()}

    assert set(LOG_STORES.values()) <= packed
