"""One storage connection in the words of its clients: Arrow and obstore, deltalake, Spark's S3A."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.config.tls_settings import certificates
from cdc_lakehouse.errors import NotSupportedYetError

_DEFAULT_REGION = "us-east-1"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_CREDENTIALS = "cdclakehouse.ConnectionCredentials"
_SECONDS_TO_CONNECT = 5
_SECONDS_TO_ANSWER = 60
_TRIES = 4


@dataclass(frozen=True, slots=True)
class S3Access:
    """How an object store is reached. Its `repr` holds no secret."""

    bucket: str
    endpoint: str
    region: str
    login: str
    password: str = field(repr=False)
    ca_pem: str | None = field(default=None, repr=False)
    """Certificate of the authority that signed the store's, where the system does not know it."""

    @property
    def is_encrypted(self) -> bool:
        return self.endpoint.startswith("https:")


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where the lake is. `s3` is None on a disk."""

    root: str
    """`file:///…` or `s3a://bucket/…`, without a slash at the end."""
    s3: S3Access | None = None


def storage_settings(connection: Connection) -> StorageSettings:
    root = connection.extra.get("root", "")
    if not root:
        raise connection.problem("its extra has no `root`, like file:///var/lib/lake or s3a://bucket/lake")
    scheme = urlsplit(root).scheme
    if scheme == "s3a":
        return _on_s3(connection, root)
    if scheme == "s3":
        raise connection.problem(f"its root {root!r} must be spelled as Spark spells it: s3a://…")
    if scheme and scheme != "file":
        raise NotSupportedYetError(feature=f"a lake on {scheme}: (only file: and s3a: were tested)")
    if "ca_pem" in connection.extra:
        raise connection.problem("it has a ca_pem that a root on a disk would not use")
    return StorageSettings(root=_on_disk(connection, root))


def storage_root(connection: Connection) -> str:
    return storage_settings(connection).root


def _on_disk(connection: Connection, root: str) -> str:
    parts = urlsplit(root)
    path = parts.path.rstrip("/")
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not path.startswith("/"):
        raise connection.problem(f"its root {root!r} must be absolute, like file:///var/lib/lake")
    _refuse_odd_characters(connection, root, root.removeprefix("file:"))
    return f"file://{path}"


def _on_s3(connection: Connection, root: str) -> StorageSettings:
    parts = urlsplit(root)
    if not _BUCKET.fullmatch(parts.netloc):
        raise connection.problem(f"its root {root!r} must name a bucket, like s3a://bucket/lake")
    _refuse_odd_characters(connection, root, root.removeprefix("s3a:"))
    endpoint = connection.extra.get("endpoint", "")
    if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?/?", endpoint):
        raise connection.problem(
            "a root on s3a needs an `endpoint` in its extra, like https://s3.example:8333"
        )
    if not connection.login or not connection.password:
        raise connection.problem("a root on s3a needs a login and a password: access key and secret key")
    ca_pem = certificates(connection).ca_pem
    if ca_pem is not None and not endpoint.startswith("https:"):
        raise connection.problem("it has a ca_pem that an endpoint with http:// would not use")
    return StorageSettings(
        root=f"s3a://{parts.netloc}{parts.path.rstrip('/')}",
        s3=S3Access(
            bucket=parts.netloc,
            endpoint=endpoint.rstrip("/"),
            region=connection.extra.get("region", _DEFAULT_REGION),
            login=connection.login,
            password=connection.password,
            ca_pem=ca_pem,
        ),
    )


def _refuse_odd_characters(connection: Connection, root: str, path: str) -> None:
    if not re.fullmatch(r"[\w./+@~-]+", path) or ".." in path.split("/"):
        raise connection.problem(f"its root {root!r} may hold letters, digits and ._-+@~/ only, and no '..'")


def deltalake_options(access: S3Access) -> dict[str, str]:
    """For `deltalake.DeltaTable(storage_options=…)`; the password is in it."""
    return {
        "AWS_ACCESS_KEY_ID": access.login,
        "AWS_SECRET_ACCESS_KEY": access.password,
        "AWS_ENDPOINT_URL": access.endpoint,
        "AWS_REGION": access.region,
        "AWS_ALLOW_HTTP": str(not access.is_encrypted).lower(),
        "aws_conditional_put": "etag",
        "connect_timeout": f"{_SECONDS_TO_CONNECT}s",
        "timeout": f"{_SECONDS_TO_ANSWER}s",
        "max_retries": str(_TRIES),
    }


def s3a_settings(access: S3Access) -> dict[str, str]:
    """For Spark, without a secret: those its class reads from the environment of the process."""
    settings = {
        "endpoint": access.endpoint,
        "endpoint.region": access.region,
        "path.style.access": "true",
        "connection.ssl.enabled": str(access.is_encrypted).lower(),
        "attempts.maximum": str(_TRIES),
        "aws.credentials.provider": _CREDENTIALS,
        "create.conditional.enabled": "true",
    }
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}
