import contextlib
import datetime as dt
import os
import ssl

import pytest
from cryptography import x509

from domkl.errors import DataError, ParameterError
from domkl.mesh.config import certificates as ca

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def authority(tmp_path):
    ca.create_authority(tmp_path / "ca", "farm")
    return tmp_path / "ca"


def is_believed(server, client, name):
    """Whether a TLS client with the folder `client` accepts the server as `name`, and it him."""
    contexts = []
    for kind, folder in ((ssl.PROTOCOL_TLS_SERVER, server), (ssl.PROTOCOL_TLS_CLIENT, client)):
        context = ssl.SSLContext(kind)
        context.load_verify_locations(folder / "ca.pem")
        context.load_cert_chain(folder / "node.pem", folder / "node.key")
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        contexts.append(context)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        contexts[1].wrap_bio(down, up, server_hostname=name),
        contexts[0].wrap_bio(up, down, server_side=True),
    ]
    try:
        for _ in range(4):
            for end in ends:
                with contextlib.suppress(ssl.SSLWantReadError):
                    end.do_handshake()
    except ssl.SSLError:
        return False
    return all(end.getpeercert() for end in ends)


def test_nodes_of_one_mesh_believe_each_other_by_name(authority, tmp_path):
    for name in ("a", "b"):
        ca.issue(authority, name, tmp_path / name)
    assert is_believed(tmp_path / "a", tmp_path / "b", "a")
    assert not is_believed(tmp_path / "a", tmp_path / "b", "b")


def test_another_mesh_is_not_believed(authority, tmp_path):
    ca.create_authority(tmp_path / "other", "farm")
    ca.issue(authority, "a", tmp_path / "a")
    ca.issue(tmp_path / "other", "b", tmp_path / "b")
    assert not is_believed(tmp_path / "a", tmp_path / "b", "a")


def test_a_certificate_says_name_hosts_and_end(authority, tmp_path):
    ca.issue(authority, "a", tmp_path / "a", days=30, hosts=["a.example", "10.0.0.1"], now=NOW)
    certificate = x509.load_pem_x509_certificate((tmp_path / "a" / "node.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a", "a.example"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    assert ca.common_name(tmp_path / "a" / "node.pem") == "a"
    assert ca.expires(tmp_path / "a" / "node.pem") == NOW + dt.timedelta(days=30)


def test_keys_are_for_their_owner_alone(authority, tmp_path, monkeypatch):
    modes = []
    real = os.open
    monkeypatch.setattr(
        os,
        "open",
        lambda path, flags, mode=0o777: modes.append((path, mode)) or real(path, flags, mode),
    )
    ca.issue(authority, "a", tmp_path / "a")
    assert (tmp_path / "a" / "node.key").stat().st_mode & 0o777 == 0o600
    assert (authority / "ca.key").stat().st_mode & 0o777 == 0o600
    assert [mode for path, mode in modes if "key" in path.name] == [0o600]
    assert sorted(each.name for each in (tmp_path / "a").iterdir()) == [
        "ca.pem",
        "node.key",
        "node.pem",
    ]


def test_to_renew_keeps_the_authority_and_changes_the_key(authority, tmp_path):
    for name in ("a", "b"):
        ca.issue(authority, name, tmp_path / name)
    old = (tmp_path / "a" / "node.key").read_bytes()
    ca.issue(authority, "a", tmp_path / "a")
    assert (tmp_path / "a" / "node.key").read_bytes() != old
    assert is_believed(tmp_path / "a", tmp_path / "b", "a")


def test_the_authority_changes_while_the_mesh_runs(authority, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    steps = [
        lambda: [ca.issue(authority, each.name, each) for each in (a, b)],
        lambda: ca.rotate_authority(authority),
        lambda: ca.trust(authority, a),
        lambda: ca.trust(authority, b),
        lambda: ca.issue(authority, "a", a),
        lambda: ca.issue(authority, "b", b),
        lambda: ca.retire_authority(authority),
        lambda: ca.trust(authority, a),
        lambda: ca.trust(authority, b),
    ]
    old = None
    for step in steps:
        step()
        assert is_believed(a, b, "a")
        assert is_believed(b, a, "b")
        old = old or (authority / "ca.pem").read_bytes()
    assert old not in (a / "ca.pem").read_bytes()


def test_a_rotation_cut_off_before_the_new_key_changes_nothing(authority, tmp_path):
    key = (authority / "ca.key").read_bytes()
    ca.issue(authority, "a", tmp_path / "a")
    ca.rotate_authority(authority)
    (authority / "ca.key").write_bytes(key)
    ca.issue(authority, "b", tmp_path / "b")
    ca.trust(authority, tmp_path / "a")
    assert is_believed(tmp_path / "a", tmp_path / "b", "a")


def test_what_is_not_an_authority_is_said(authority, tmp_path):
    with pytest.raises(DataError, match="already"):
        ca.create_authority(authority, "farm")
    with pytest.raises(DataError, match="readable"):
        ca.issue(tmp_path / "nothing", "a", tmp_path / "a")
    with pytest.raises(ParameterError, match="name must be"):
        ca.issue(authority, "../a", tmp_path / "a")
    with pytest.raises(ParameterError, match="days"):
        ca.issue(authority, "a", tmp_path / "a", days=0)
    with pytest.raises(ParameterError, match="hosts"):
        ca.issue(authority, "a", tmp_path / "a", hosts=["bücher.example"])
    (authority / "ca.pem").write_text("nothing")
    with pytest.raises(DataError, match="PEM"):
        ca.expires(authority / "ca.pem")
