"""The relay carries bytes both ways; cut, it is silent and closes nothing; healed, all arrives."""

import socket

import pytest

from domkl.mesh.testing.relay import Relay
from domkl.mesh.transports.base import Address


@pytest.fixture
def ends():
    """A socket at each end of a relay, and the relay."""
    with socket.create_server(("127.0.0.1", 0)) as far, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = Address("127.0.0.1", probe.getsockname()[1])
        probe.close()
        with Relay(listen, Address(*far.getsockname())) as relay:
            near = socket.create_connection(listen, timeout=5)
            other, _ = far.accept()
            other.settimeout(5)
            with near, other:
                yield near, other, relay


def test_bytes_go_both_ways(ends):
    near, other, _ = ends
    near.sendall(b"there")
    assert other.recv(5, socket.MSG_WAITALL) == b"there"
    other.sendall(b"back")
    assert near.recv(4, socket.MSG_WAITALL) == b"back"


def test_cut_and_healed(ends):
    near, other, relay = ends
    relay.cut()
    near.sendall(b"late")
    other.settimeout(0.2)
    with pytest.raises(TimeoutError):
        other.recv(1)
    relay.heal()
    other.settimeout(5)
    assert other.recv(4, socket.MSG_WAITALL) == b"late"


def test_one_end_closed_closes_the_other(ends):
    near, other, _ = ends
    near.close()
    assert other.recv(1) == b""
