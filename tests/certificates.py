"""A private authority and what it signs, made for one test run: for servers and clients on loopback."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Signed:
    """Texts in PEM."""

    certificate: str
    private_key: str

    def files_in(self, folder: Path) -> tuple[Path, Path]:
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        certificate.write_text(self.certificate)
        key.write_text(self.private_key)
        key.chmod(0o600)
        return certificate, key


class Authority:
    def __init__(self, name: str = "tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(f"authority of {name}")
        builder = _builder(self._name, self._key, issuer=self._name)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            **dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment"), False),
            **dict.fromkeys(("key_agreement", "encipher_only", "decipher_only"), False),
        )
        builder = builder.add_extension(usage, critical=True)
        subject = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._certificate = builder.add_extension(subject, critical=False).sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return _pem(self._certificate)

    def server(self, *addresses: str) -> Signed:
        """For those addresses; by default for this machine as itself."""
        return self._sign("server", addresses or ("127.0.0.1", "localhost"))

    def client(self, name: str = "lakehouse") -> Signed:
        return self._sign(name, ())

    def server_context(self, folder: Path, *, asks_clients: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.server().files_in(folder))
        if asks_clients:
            context.load_verify_locations(cadata=self.pem)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _sign(self, name: str, addresses: tuple[str, ...]) -> Signed:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(name), key, issuer=self._name)
        role = ExtendedKeyUsageOID.SERVER_AUTH if addresses else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([role]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if addresses:
            names = x509.SubjectAlternativeName([_address(each) for each in addresses])
            builder = builder.add_extension(names, critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Signed(_pem(builder.sign(self._key, hashes.SHA256())), private.decode())


@cache
def authority() -> Authority:
    """The one whose certificates the tests trust."""
    return Authority()


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))


def _address(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
