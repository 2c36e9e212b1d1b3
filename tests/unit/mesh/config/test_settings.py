"""The rules between the parts of a mesh file are tested in test_file.py; here: addresses."""

import pytest

from domkl.errors import ParameterError
from domkl.mesh.config.settings import members_at, next_member
from domkl.mesh.transports.base import Address


def test_ports_count_up_on_a_host():
    here = members_at("abc", ["127.0.0.1"])
    assert [str(m.address) for m in here] == [f"127.0.0.1:2100{k}" for k in range(3)]
    assert [m.http.port for m in here] == [22000, 22001, 22002]
    devices = members_at("abc", ["x", "y", "x"], port=7000, http_host="0.0.0.0")
    assert [str(m.address) for m in devices] == ["x:7000", "y:7000", "x:7001"]
    assert next_member(devices, "d", "x").address == Address("x", 7002)
    assert next_member(devices, "d", "z").address == Address("z", 21000)
    assert next_member(devices, "d", "z").http == Address("0.0.0.0", 22000)
    with pytest.raises(ParameterError, match="hosts must be one or 3, got 2"):
        members_at("abc", ["x", "y"])
