"""The connection to a source database in the words of its client; PostgreSQL only."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lakehouse.config.settings import Connection

_PORT = 5432
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """How the database is reached, and who tells what its connector has delivered."""

    host: str
    port: int
    database: str
    login: str
    password: str | None = field(default=None, repr=False)
    sslmode: str = "prefer"
    sslrootcert: str | None = None
    slot: str | None = None
    """Asked without `offsets_topic`. None: all logical ones of the database; the last of them counts."""
    offsets_topic: str | None = None
    """Where Kafka Connect keeps what the connector has committed."""

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
    sslmode = connection.extra.get("sslmode", "prefer")
    if sslmode not in _SSL_MODES:
        raise connection.problem(f"its sslmode {sslmode!r} is none of {', '.join(_SSL_MODES)}")
    return SourceSettings(
        host=connection.host,
        port=connection.port or _PORT,
        database=connection.extra["database"],
        login=connection.login,
        password=connection.password,
        sslmode=sslmode,
        sslrootcert=connection.extra.get("sslrootcert"),
        slot=connection.extra.get("slot"),
        offsets_topic=connection.extra.get("offsets_topic"),
    )
