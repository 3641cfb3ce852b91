"""One Kafka connection in the words of its two clients: librdkafka and Java."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.errors import NotSupportedYetError

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class _Access:
    bootstrap: str
    protocol: str
    mechanism: str | None
    login: str
    password: str = field(repr=False)
    ca_pem: str | None


def librdkafka_settings(connection: Connection) -> dict[str, str]:
    """For confluent-kafka: `Consumer`, `AdminClient`."""
    access = _access(connection)
    settings = {"bootstrap.servers": access.bootstrap, "security.protocol": access.protocol}
    if access.mechanism is not None:
        settings |= {
            "sasl.mechanism": access.mechanism,
            "sasl.username": access.login,
            "sasl.password": access.password,
        }
    if access.ca_pem is not None:
        settings["ssl.ca.pem"] = access.ca_pem
    return settings


def java_kafka_settings(connection: Connection) -> dict[str, str]:
    """For Spark's source, which wants each key with `kafka.` in front."""
    access = _access(connection)
    settings = {"bootstrap.servers": access.bootstrap, "security.protocol": access.protocol}
    if access.mechanism is not None:
        login, password = _quoted(access.login), _quoted(access.password)
        module = _LOGIN_MODULES[access.mechanism]
        settings |= {
            "sasl.mechanism": access.mechanism,
            "sasl.jaas.config": f"{module} required username={login} password={password};",
        }
    if access.ca_pem is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": access.ca_pem}
    return settings


def bootstrap_servers(connection: Connection) -> str:
    """`host:port,host:port`; the connection's port goes to hosts that name none."""
    return ",".join(_with_port(connection, host.strip()) for host in (connection.host or "").split(","))


def _with_port(connection: Connection, host: str) -> str:
    if not host:
        raise connection.problem(
            "its host must be a bootstrap list like kafka1.example:9092,kafka2.example:9092"
        )
    if "/" in host or "@" in host:
        raise connection.problem(f"its host holds {host.split('@')[-1]!r}, which is not host:port")
    name, colon, port = host.rpartition(":")
    if colon and name and port.isdecimal():
        return host
    if colon and not host.endswith("]"):
        raise connection.problem(f"its host holds {host!r}, which is not host:port")
    if connection.port is None:
        raise connection.problem(f"its host {host!r} has no port")
    return f"{host}:{connection.port}"


def _access(connection: Connection) -> _Access:
    ca_pem = connection.extra.get("ca_pem")
    protocol = _protocol(connection, ca_pem)
    return _Access(
        bootstrap=bootstrap_servers(connection),
        protocol=protocol,
        mechanism=_mechanism(connection, protocol),
        login=connection.login or "",
        password=connection.password or "",
        ca_pem=ca_pem,
    )


def _protocol(connection: Connection, ca_pem: str | None) -> str:
    """A login is encrypted unless the connection says otherwise in words."""
    default = ("SASL_SSL" if connection.login else "SSL") if connection.login or ca_pem else "PLAINTEXT"
    protocol = connection.extra.get("security_protocol", default).upper()
    if protocol not in _PROTOCOLS:
        raise connection.problem(f"its security_protocol {protocol!r} is none of {', '.join(_PROTOCOLS)}")
    sasl = protocol.startswith("SASL_")
    if sasl and not (connection.login and connection.password):
        raise connection.problem(f"its security_protocol {protocol} needs login and password")
    if connection.login and not sasl:
        raise connection.problem(f"it has a login that security_protocol {protocol} would not use")
    if ca_pem is not None and not protocol.endswith("SSL"):
        raise connection.problem(f"it has a ca_pem that security_protocol {protocol} would not use")
    return protocol


def _mechanism(connection: Connection, protocol: str) -> str | None:
    named = connection.extra.get("sasl_mechanism")
    if not protocol.startswith("SASL_"):
        if named is not None:
            raise connection.problem(
                f"it has a sasl_mechanism that security_protocol {protocol} would not use"
            )
        return None
    mechanism = (named or "PLAIN").upper()
    if mechanism not in _LOGIN_MODULES:
        raise NotSupportedYetError(
            feature=f"the sasl_mechanism {mechanism} (known: {', '.join(_LOGIN_MODULES)})"
        )
    return mechanism


def _quoted(text: str) -> str:
    """A JAAS value: a quote or a backslash inside would end it early."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
