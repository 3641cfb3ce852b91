"""One Kafka connection in the words of its two clients: librdkafka and Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.config.tls_settings import Certificates, OAuthClient, certificates, oauth_client
from cdc_lakehouse.errors import NotSupportedYetError

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_OAUTHBEARER = "OAUTHBEARER"
_LOGIN_MODULES = {
    _OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
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
    certificates: Certificates
    oauth: OAuthClient | None


def librdkafka_settings(connection: Connection) -> dict[str, str]:
    """For confluent-kafka: `Consumer`, `AdminClient`."""
    access = _access(connection)
    settings = {"bootstrap.servers": access.bootstrap, "security.protocol": access.protocol}
    if access.oauth is not None:
        settings |= _librdkafka_oauth(access.oauth)
    elif access.mechanism is not None:
        settings |= {
            "sasl.mechanism": access.mechanism,
            "sasl.username": access.login,
            "sasl.password": access.password,
        }
    shown = access.certificates
    return settings | _without_none(
        {
            "ssl.ca.pem": shown.ca_pem,
            "ssl.certificate.pem": shown.certificate_pem,
            "ssl.key.pem": shown.private_key_pem,
        }
    )


def java_kafka_settings(connection: Connection) -> dict[str, str]:
    """For Spark's source, which wants each key with `kafka.` in front."""
    access = _access(connection)
    settings = {"bootstrap.servers": access.bootstrap, "security.protocol": access.protocol}
    if access.oauth is not None:
        settings |= _java_oauth(access.oauth)
    elif access.mechanism is not None:
        settings |= {
            "sasl.mechanism": access.mechanism,
            "sasl.jaas.config": _jaas(
                access.mechanism, {"username": access.login, "password": access.password}
            ),
        }
    shown = access.certificates
    if shown.ca_pem is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": shown.ca_pem}
    if shown.certificate_pem is not None and shown.private_key_pem is not None:
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": shown.certificate_pem,
            "ssl.keystore.key": shown.private_key_pem,
        }
    return settings


def _librdkafka_oauth(oauth: OAuthClient) -> dict[str, str]:
    return _without_none(
        {
            "sasl.mechanism": _OAUTHBEARER,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": oauth.client_id,
            "sasl.oauthbearer.client.secret": oauth.client_secret,
            "sasl.oauthbearer.token.endpoint.url": oauth.url,
            "sasl.oauthbearer.scope": oauth.scope,
            "https.ca.pem": oauth.ca_pem,
        }
    )


def _java_oauth(oauth: OAuthClient) -> dict[str, str]:
    options = {"clientId": oauth.client_id, "clientSecret": oauth.client_secret, "scope": oauth.scope}
    if oauth.ca_pem is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": oauth.ca_pem}
    return {
        "sasl.mechanism": _OAUTHBEARER,
        "sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.oauthbearer.token.endpoint.url": oauth.url,
        "sasl.jaas.config": _jaas(_OAUTHBEARER, options),
    }


def _jaas(mechanism: str, options: Mapping[str, str | None]) -> str:
    pairs = " ".join(f"{name}={_quoted(value)}" for name, value in options.items() if value is not None)
    return f"{_LOGIN_MODULES[mechanism]} required {pairs};"


def _without_none(settings: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if value is not None}


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
    shown, oauth = certificates(connection), oauth_client(connection)
    protocol = _protocol(connection, shown)
    return _Access(
        bootstrap=bootstrap_servers(connection),
        protocol=protocol,
        mechanism=_mechanism(connection, protocol, oauth),
        login=connection.login or "",
        password=connection.password or "",
        certificates=shown,
        oauth=oauth,
    )


def _protocol(connection: Connection, shown: Certificates) -> str:
    """A login is encrypted unless the connection says otherwise in words."""
    default = ("SASL_SSL" if connection.login else "SSL") if connection.login or shown else "PLAINTEXT"
    protocol = connection.extra.get("security_protocol", default).upper()
    if protocol not in _PROTOCOLS:
        raise connection.problem(f"its security_protocol {protocol!r} is none of {', '.join(_PROTOCOLS)}")
    sasl = protocol.startswith("SASL_")
    if sasl and not (connection.login and connection.password):
        raise connection.problem(f"its security_protocol {protocol} needs login and password")
    if connection.login and not sasl:
        raise connection.problem(f"it has a login that security_protocol {protocol} would not use")
    if shown and not protocol.endswith("SSL"):
        named = "ca_pem" if shown.ca_pem is not None else "certificate_pem"
        raise connection.problem(f"it has a {named} that security_protocol {protocol} would not use")
    return protocol


def _mechanism(connection: Connection, protocol: str, oauth: OAuthClient | None) -> str | None:
    named = connection.extra.get("sasl_mechanism")
    if not protocol.startswith("SASL_"):
        if named is not None:
            raise connection.problem(
                f"it has a sasl_mechanism that security_protocol {protocol} would not use"
            )
        return None
    mechanism = (named or ("PLAIN" if oauth is None else _OAUTHBEARER)).upper()
    if mechanism == _OAUTHBEARER and oauth is None:
        raise connection.problem("its sasl_mechanism OAUTHBEARER needs an `oauth_url`: who gives out tokens")
    if mechanism != _OAUTHBEARER and oauth is not None:
        raise connection.problem(f"it has an oauth_url that sasl_mechanism {mechanism} would not use")
    if mechanism not in _LOGIN_MODULES:
        raise NotSupportedYetError(
            feature=f"the sasl_mechanism {mechanism} (known: {', '.join(_LOGIN_MODULES)})"
        )
    return mechanism


def _quoted(text: str) -> str:
    """A JAAS value: a quote, a backslash or a line break inside would end it early."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'
