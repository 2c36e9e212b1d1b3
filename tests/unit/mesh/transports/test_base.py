import pytest

from domkl.errors import ParameterError
from domkl.mesh.transports.base import Address, check_name


@pytest.mark.parametrize("text", ["host:1", "10.0.0.1:65535", "[::1]:7447", "[fe80::1%eth0]:80"])
def test_an_address_reads_what_it_writes(text):
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["host", "host:", ":80", "::1:80", "host:65536", "host:-1", "a b:1", "[::1]", "h:١"]
)
def test_what_is_no_address_is_said(text):
    with pytest.raises(ParameterError, match="address must be host:port"):
        Address.parse(text)


def test_names_suit_certificates_keys_and_paths():
    assert check_name("node-7") == "node-7"
    assert check_name("0" * 63)
    for name in ("", "-a", "A", "a.b", "a/b", "a" * 64, "a\n", "é", "*"):
        with pytest.raises(ParameterError, match="name must be"):
            check_name(name)
