"""The store behind a URI: the one place that knows how each kind of store is opened.

On the driver and in a worker alike: where a URI is on an object store, its login is in the environment
of the process.
"""

from __future__ import annotations

import os
from functools import cache

from pyarrow.fs import AwsStandardS3RetryStrategy, FileSystem, LocalFileSystem, S3FileSystem

from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.config.storage_settings import (
    S3Access,
    StorageSettings,
    deltalake_options,
    storage_settings,
)
from cdc_lakehouse.config.tls_settings import trust_in_this_process, trusted_file

_S3A = "s3a://"
_INTRODUCED: dict[str, S3Access] = {}
"""Bucket -> its login."""
_SECONDS_TO_CONNECT = 5.0
_TRIES = 4


def filesystem_of(uri: str) -> tuple[FileSystem, str]:
    """The file system of `uri` and the path inside it; the same on the driver and in a worker."""
    if uri.startswith(_S3A):
        return _s3_filesystem(_access(uri)), uri.removeprefix(_S3A)
    filesystem, path = FileSystem.from_uri(uri)
    return filesystem, path


def is_object_store(uri: str) -> bool:
    """A file there appears whole and at once, and moving one is copying it."""
    return uri.startswith(_S3A)


def sync_file(filesystem: FileSystem, path: str) -> None:
    """Wait until a file is on the disk itself. An object store answers only when it has stored the bytes."""
    if isinstance(filesystem, LocalFileSystem):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def delta_options(uri: str) -> dict[str, str]:
    """`storage_options` for `deltalake`."""
    if not uri.startswith(_S3A):
        return {}
    access = _access(uri)
    if access.ca_pem is not None:
        trust_in_this_process(access.ca_pem)
    return deltalake_options(access)


def introduce(settings: StorageSettings) -> None:
    """For a process that has the connection from elsewhere than its environment, as the demo has."""
    if settings.s3 is not None:
        _INTRODUCED[settings.s3.bucket] = settings.s3


def _access(uri: str) -> S3Access:
    bucket = uri.removeprefix(_S3A).split("/")[0]
    if bucket in _INTRODUCED:
        return _INTRODUCED[bucket]
    connection = connection_from_environment(Role.STORAGE)
    access = storage_settings(connection).s3
    if access is None or bucket != access.bucket:
        raise connection.problem(f"it is for another place than {uri}")
    return access


@cache
def _s3_filesystem(access: S3Access) -> S3FileSystem:
    return S3FileSystem(
        access_key=access.login,
        secret_key=access.password,
        endpoint_override=access.endpoint,
        region=access.region,
        force_virtual_addressing=False,
        connect_timeout=_SECONDS_TO_CONNECT,
        tls_ca_file_path=None if access.ca_pem is None else trusted_file(access.ca_pem),
        allow_delayed_open=True,  # one request for a small file instead of three
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_TRIES),
    )
