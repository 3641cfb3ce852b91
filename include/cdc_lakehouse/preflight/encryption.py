"""What a connection sends so that others can read it, or to whom anybody may pretend to be."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from cdc_lakehouse.config.rest_settings import RestSettings
from cdc_lakehouse.config.source_settings import SourceSettings
from cdc_lakehouse.config.storage_settings import StorageSettings
from cdc_lakehouse.config.tls_settings import is_loopback
from cdc_lakehouse.preflight.findings import Finding


def source_encryption(settings: SourceSettings) -> Iterator[Finding]:
    """None where the server shows who it is, or is on this machine."""
    if settings.is_verified:
        return
    mode = settings.sslmode
    what = "its rows and its login" if mode in ("require", "verify-ca") else "its rows in the clear"
    sentence = f"with sslmode {mode} another host can take the place of {settings.address} and get {what}"
    advice = "Take sslmode out (verify-full), and name its authority as `sslrootcert` if the system has not."
    yield Finding.warning("source", sentence, advice)


def kafka_encryption(settings: dict[str, str]) -> Iterator[Finding]:
    """`settings` are those of librdkafka."""
    protocol, bootstrap = settings["security.protocol"], settings["bootstrap.servers"]
    if protocol.endswith("SSL") or all(is_loopback(host) for host in _hosts(bootstrap)):
        return
    login = " and its login" if settings.get("sasl.mechanism") in ("PLAIN", "OAUTHBEARER") else ""
    sentence = f"security_protocol {protocol} sends every record{login} in the clear to {bootstrap}"
    yield Finding.warning(
        "kafka", sentence, "Use SSL or SASL_SSL, with `ca_pem` for an authority of your own."
    )


def registry_encryption(settings: RestSettings) -> Iterator[Finding]:
    parts = urlsplit(settings.url)
    if parts.scheme == "https" or settings.login is None or is_loopback(parts.hostname or ""):
        return
    sentence = f"its login is sent in the clear to {settings.url}"
    yield Finding.warning("registry", sentence, "Use https, with `ca_pem` for an authority of your own.")


def connect_encryption(settings: RestSettings) -> Iterator[Finding]:
    parts = urlsplit(settings.url)
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return
    login = "" if settings.login is None else "its login and "
    settings_of_connectors = f"{login}the settings of connectors, which may hold passwords,"
    sentence = f"{settings_of_connectors} are sent in the clear by {settings.url}"
    yield Finding.warning("connect", sentence, "Use https, with `ca_pem` for an authority of your own.")


def lake_encryption(storage: StorageSettings) -> Iterator[Finding]:
    if storage.s3 is None or storage.s3.is_encrypted:
        return
    if is_loopback(urlsplit(storage.s3.endpoint).hostname or ""):
        return
    sentence = f"all rows are sent in the clear to {storage.s3.endpoint}"
    yield Finding.warning("lake", sentence, "Use https, with `ca_pem` for an authority of your own.")


def _hosts(bootstrap: str) -> list[str]:
    return [each.rpartition(":")[0] for each in bootstrap.split(",")]
