"""The certificates of a mesh: its own authority, and one certificate for each node.

A node's folder holds `ca.pem` (the trusted authorities), `node.pem` and `node.key`. The authority's
folder holds `ca.pem` and `ca.key`, and need not be on any node. The common name and the first
alternative name of a certificate are the node's name; `hosts` are added for transports that check
addresses.

To change the authority while the mesh runs: `rotate_authority`, then `trust` for every node (both
authorities are trusted), then `issue` for every node, then `retire_authority` and `trust` again.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from domkl import storage
from domkl.errors import DataError, ParameterError
from domkl.mesh.config import DAYS
from domkl.mesh.transports.base import check_name

CA, CA_KEY, NODE, NODE_KEY = "ca.pem", "ca.key", "node.pem", "node.key"
AUTHORITY_DAYS = 3650
#: all uses of a key that X.509 knows
USES = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
        "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip
SKEW = timedelta(hours=1)  # clocks of nodes may differ by this much


def create_authority(folder: Path, mesh_name: str, *, now: datetime | None = None) -> None:
    """Make the authority of a new mesh; an existing one is never overwritten."""
    if (folder / CA_KEY).exists():
        raise DataError(f"folder must not hold an authority already, got {folder}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key, certificate = _new_authority(f"{check_name(mesh_name)} authority", now)
    storage.write(folder / CA, _pem([certificate]))
    _write_secret(folder / CA_KEY, key)


def rotate_authority(folder: Path, *, now: datetime | None = None) -> None:
    """Make a new key for the authority; `ca.pem` holds new and old until `retire_authority`."""
    _, current = _authority(folder)
    common_name = str(current.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    key, certificate = _new_authority(common_name, now)
    storage.write(folder / CA, _pem([certificate, current]))
    _write_secret(folder / CA_KEY, key)


def retire_authority(folder: Path) -> None:
    """Trust the newest authority only."""
    storage.write(folder / CA, _pem([_authority(folder)[1]]))


def trust(folder_of_ca: Path, out_folder: Path) -> None:
    """Copy the list of trusted authorities to a node's folder."""
    bundle = folder_of_ca / CA
    _load(bundle)
    out_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    storage.write(out_folder / CA, bundle.read_bytes())


def issue(
    folder_of_ca: Path,
    name: str,
    out_folder: Path,
    *,
    days: int = DAYS,
    hosts: Iterable[str] = (),
    now: datetime | None = None,
) -> None:
    """Give a node a key and a certificate; to renew them, issue again.

    Parameters
    ----------
    folder_of_ca : Path
        The authority's folder.
    name : str
        The node's name.
    out_folder : Path
        The node's folder; each file in it is replaced atomically.
    days : int
        How long the certificate is valid.
    hosts : iterable of str, optional
        Addresses and host names at which the node is dialed.
    now : datetime, optional
        When it becomes valid; default now.
    """
    if days < 1:
        raise ParameterError(f"days must be >= 1, got {days}")
    ca_key, ca = _authority(folder_of_ca)
    key = ec.generate_private_key(ec.SECP256R1())
    usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    names = [x509.DNSName(check_name(name)), *(_host(each) for each in hosts if each != name)]
    certificate = (
        _builder(_subject(name), ca.subject, key, days, now, ["digital_signature"])
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    trust(folder_of_ca, out_folder)
    _write_secret(out_folder / NODE_KEY, key)
    storage.write(out_folder / NODE, _pem([certificate]))


def expires(path: Path) -> datetime:
    """When the first certificate in a file expires."""
    return validity(path)[1]


def validity(path: Path) -> tuple[datetime, datetime]:
    """From when to when the first certificate in a file is valid."""
    found = _load(path)[0]
    return found.not_valid_before_utc, found.not_valid_after_utc


def common_name(path: Path) -> str:
    """The node that the first certificate in a file names."""
    names = _load(path)[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names:
        raise DataError(f"certificate must have a common name, got none in {path}")
    return str(names[0].value)


def is_of_newest(folder_of_ca: Path, path: Path) -> bool:
    """Whether the first certificate in a file is signed by the authority's current key."""
    try:
        _load(path)[0].verify_directly_issued_by(_authority(folder_of_ca)[1])
    except (ValueError, InvalidSignature):
        return False
    return True


def check_certificate(folder: Path, name: str) -> None:
    """Raise unless a folder holds the certificate of this very node."""
    found = common_name(folder / NODE)
    if found != name:
        raise DataError(f"certificate in {folder} must be of {name!r}, got {found!r}; issue one")


def _new_authority(
    common_name: str, now: datetime | None
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.NameAttribute(NameOID.SERIAL_NUMBER, os.urandom(8).hex())  # tells keys apart
    subject = x509.Name([*_subject(common_name), serial])
    certificate = (
        _builder(subject, subject, key, AUTHORITY_DAYS, now, ["key_cert_sign", "crl_sign"])
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return key, certificate


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    days: int,
    now: datetime | None,
    uses: Sequence[str],
) -> x509.CertificateBuilder:
    begin = now or datetime.now(UTC)
    usage = x509.KeyUsage(**{use: use in uses for use in USES})
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - SKEW)
        .not_valid_after(begin + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(usage, critical=True)
    )


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(text: str) -> x509.GeneralName:
    with contextlib.suppress(ValueError):
        return x509.IPAddress(ip_address(text))
    try:
        return x509.DNSName(text)
    except ValueError:
        raise ParameterError(f"hosts must be addresses or ASCII host names, got {text!r}") from None


def _authority(folder: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """The key, and the certificate in the bundle that belongs to it."""
    key = _load_key(folder / CA_KEY)
    for certificate in _load(folder / CA):
        if certificate.public_key() == key.public_key():
            return key, certificate
    raise DataError(f"{CA} must hold the certificate of {CA_KEY}, got another in {folder}")


def _load(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise DataError(f"certificate must be a readable file, got {error}") from error
    except ValueError as error:
        raise DataError(f"certificate must be in PEM form, got {path}: {error}") from error


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"key must be a readable PEM file, got {path}: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise DataError(f"key must be on an elliptic curve, got another kind in {path}")
    return key


def _pem(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def _write_secret(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    form = serialization.PrivateFormat.PKCS8
    text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    storage.write(path, text, mode=0o600)
