"""Ask the lake's store whether it refuses to create what is there already: every commit rests on that."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError
from obstore.store import S3Store

from cdc_lakehouse.config.storage_settings import S3Access, StorageSettings
from cdc_lakehouse.errors import StorageUnavailableError, UnsafeStoreError

_FOLDER = "_ops"
_UNKNOWN = ("NotImplemented", "501 Not Implemented", "400 Bad Request")
"""How stores answer to a header that they do not know, when they do not ignore it."""


@cache
def require_put_if_absent(settings: StorageSettings) -> None:
    """Once per process and store. Leaves nothing behind; a store that fails is asked again."""
    name = f".probe-{secrets.token_hex(8)}"
    if settings.s3 is None:
        _try_on_disk(settings.root, name)
    else:
        _try_on_s3(settings.root, settings.s3, name)


def _try_on_disk(root: str, name: str) -> None:
    folder = Path(urlsplit(root).path) / _FOLDER
    source, link = folder / name, folder / f"{name}.link"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        source.touch()
    except OSError as exc:
        raise StorageUnavailableError(root=root, reason=exc.strerror or str(exc)) from exc
    try:
        os.link(source, link)
    except OSError as exc:
        raise UnsafeStoreError(root=root, reason=f"it makes no hard links ({exc.strerror})") from exc
    finally:
        link.unlink(missing_ok=True)
        source.unlink(missing_ok=True)


def _try_on_s3(root: str, access: S3Access, name: str) -> None:
    key = "/".join([*filter(None, urlsplit(root).path.split("/")), _FOLDER, name])
    store = S3Store(
        access.bucket,
        endpoint=access.endpoint,
        region=access.region,
        access_key_id=access.login,
        secret_access_key=access.password,
        client_options={
            "allow_http": not access.is_encrypted,
            "connect_timeout": "5s",
            "timeout": "30s",
            **({} if access.ca_pem is None else {"root_certificate": access.ca_pem}),
        },
        retry_config={"max_retries": 3},
    )
    try:
        obstore.put(store, key, b"first", mode="create")
        replaced = _replaces(store, key)
    except BaseError as exc:
        raise _failure(root, exc) from exc
    finally:
        with suppress(BaseError):
            obstore.delete(store, key)
    if replaced:
        reason = "it ignores If-None-Match, so the second of two writers would replace the first one's commit"
        raise UnsafeStoreError(root=root, reason=reason)


def _replaces(store: S3Store, key: str) -> bool:
    try:
        obstore.put(store, key, b"second", mode="create")
    except AlreadyExistsError:
        return False
    return True


def _failure(root: str, exc: BaseError) -> StorageUnavailableError | UnsafeStoreError:
    text = str(exc)
    if isinstance(exc, NotSupportedError) or any(sign in text for sign in _UNKNOWN):
        return UnsafeStoreError(root=root, reason="it does not know If-None-Match")
    return StorageUnavailableError(root=root, reason=text.splitlines()[0][:300])
