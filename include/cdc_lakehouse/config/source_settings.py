"""The connection to a source database in the words of its client; PostgreSQL only."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.config.tls_settings import is_loopback

_PORT = 5432
_ENCRYPTED = ("require", "verify-ca", "verify-full")
_SSL_MODES = ("disable", "allow", "prefer", *_ENCRYPTED)


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """How the database is reached, and who tells what its connector has delivered."""

    host: str
    port: int
    database: str
    login: str
    password: str | None = field(default=None, repr=False)
    sslmode: str = "verify-full"
    sslrootcert: str | None = None
    """A file; `system` means the authorities that the system trusts."""
    slot: str | None = None
    """Asked without `offsets_topic`. None: all logical ones of the database; the last of them counts."""
    offsets_topic: str | None = None
    """Where Kafka Connect keeps what the connector has committed."""

    @property
    def is_verified(self) -> bool:
        """Return whether only the server that is named can answer."""
        return self.sslmode == "verify-full" or is_loopback(self.host)

    @property
    def require_auth(self) -> str | None:
        """Methods that the client refuses: an unverified server must not get the password in clear text."""
        return None if self.sslmode in _ENCRYPTED else "!password"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"


def source_settings(connection: Connection) -> SourceSettings:
    if not connection.host:
        raise connection.problem("it has no host")
    if not connection.login:
        raise connection.problem("it has no login; a role that may SELECT is enough")
    if "database" not in connection.extra:
        raise connection.problem("its extra has no `database`")
    usual = "prefer" if is_loopback(connection.host) else "verify-full"
    sslmode, sslrootcert = connection.extra.get("sslmode", usual), connection.extra.get("sslrootcert")
    if sslmode not in _SSL_MODES:
        raise connection.problem(f"its sslmode {sslmode!r} is none of {', '.join(_SSL_MODES)}")
    if sslrootcert is None and sslmode == "verify-ca":
        raise connection.problem("its sslmode verify-ca needs an sslrootcert: a file with the authority")
    if sslrootcert is None and sslmode == "verify-full":
        sslrootcert = "system"
    return SourceSettings(
        host=connection.host,
        port=connection.port or _PORT,
        database=connection.extra["database"],
        login=connection.login,
        password=connection.password,
        sslmode=sslmode,
        sslrootcert=sslrootcert,
        slot=connection.extra.get("slot"),
        offsets_topic=connection.extra.get("offsets_topic"),
    )
