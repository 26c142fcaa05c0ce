"""Throw-away certificates: a root of trust and what it signs, on elliptic curves for speed."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=365)
_CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class KeyPair:
    """A private key and what the public may see of it, as files in PEM."""

    public: Path
    """Certificate, or for a plain key the public key."""
    key: Path


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(folder: Path, name: str, public: bytes, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pair = KeyPair(folder / f"{name}.crt", folder / f"{name}.key")
    pair.public.write_bytes(public)
    pair.key.touch(mode=0o600)
    pair.key.write_bytes(_private_pem(key))
    return pair


def signing_key(folder: Path, name: str) -> KeyPair:
    """Make a key pair without a certificate, for tokens of service accounts."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return _write(folder, name, public, key)


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, part) for part in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


class Authority:
    """A root certificate with its key, and a folder for what it signs."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        usage = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._builder(self._subject, self._key).add_extension(usage, critical=True)
        self.files = self._sign(name, certificate, self._key)

    def issue(
        self,
        name: str,
        common_name: str,
        *,
        organizations: Sequence[str] = (),
        hosts: Sequence[str] = ("localhost",),
    ) -> KeyPair:
        """Sign a certificate that is good as a client's and as a server's for `hosts`.

        Args:
            name: Of its files in the folder.
            common_name: The user's name at the API server.
            organizations: The user's groups at the API server.
            hosts: Names and addresses of the server.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
        certificate = (
            self._builder(_name(common_name, organizations), key)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(names, critical=False)
        )
        return self._sign(name, certificate, key)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + _LIFETIME)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(authority, critical=False)
            .add_extension(_usage(is_authority=key is self._key), critical=True)
        )

    def _sign(
        self, name: str, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey
    ) -> KeyPair:
        signed = builder.sign(self._key, hashes.SHA256())
        return _write(self.folder, name, signed.public_bytes(serialization.Encoding.PEM), key)


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
