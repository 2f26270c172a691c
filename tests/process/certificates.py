"""Certificates for servers on loopback, signed by themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.drill.ports import HOST


def write_certificate(path: Path, days: int = 1) -> Path:
    """Write a key with its certificate for `HOST`, which is good for some days yet.

    With a negative number it has ended.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(names, critical=False)
        .sign(key, SHA256())
    )
    own = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(own + certificate.public_bytes(Encoding.PEM))
    return path
