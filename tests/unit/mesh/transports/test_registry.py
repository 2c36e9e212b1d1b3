"""The table of transports: complete, light to import, and the only place with their rules."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from mesh_node import mesh_config, solo_config

from domkl.cli.main import main
from domkl.errors import ParameterError
from domkl.mesh.config.file import as_text, config_of
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.store.folder import open_folder
from domkl.mesh.transports import registry
from domkl.mesh.transports.base import Address, Endpoint
from domkl.mesh.transports.registry import TRANSPORTS

PROJECT = Path(__file__).parents[4] / "pyproject.toml"
ROUTER = Address("10.0.0.1", 7447)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("registry") / "mesh"
    init_mesh(path, mesh_config(("a", "b"), (("a", "b"),)))
    return open_folder(path / "a")


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_transport_is_made_from_a_node_s_folder(name, folder):
    made = registry.make(name, folder.endpoint)
    assert f"{type(made).__module__}:{type(made).__name__}" == TRANSPORTS[name].home
    assert (made.name, made.neighbors) == ("a", folder.neighbors)


@pytest.mark.parametrize("entry", TRANSPORTS.values(), ids=str)
def test_its_extra_exists(entry):
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert any(entry.package in requirement for requirement in extras[entry.extra])


def test_a_router_is_for_those_that_can_use_one(folder):
    rule = r"router is for transport zenoh, got '10.0.0.1:7447' with tls"
    with pytest.raises(ParameterError, match=rule):
        registry.make("tls", folder.endpoint._replace(router=ROUTER))
    with pytest.raises(ParameterError, match=rule):
        solo_config(router=ROUTER)
    assert solo_config(router=ROUTER, transport="zenoh").router == ROUTER
    assert callable(TRANSPORTS["zenoh"].run_router)
    with pytest.raises(ParameterError, match="one that uses a router, got tls"):
        _ = TRANSPORTS["tls"].run_router


def test_an_entry_is_all_that_a_new_transport_needs(folder, monkeypatch, capsys):
    """Besides its module: mesh files, the command line and nodes read the table."""
    entry = registry.TransportEntry(
        "copy", "domkl.mesh.transports.tls:TlsTransport", "cryptography", "mesh"
    )
    monkeypatch.setitem(TRANSPORTS, "copy", entry)
    config = solo_config(transport="copy")
    assert config_of(tomllib.loads(as_text(config))) == config
    assert registry.make(config.transport, folder.endpoint).name == "a"
    with pytest.raises(SystemExit):
        main(["mesh", "init", "--help"])
    assert "--transport {tls,zenoh,copy}" in capsys.readouterr().out


def test_an_unknown_name_lists_the_known_ones(folder):
    for make in (lambda: registry.find("udp"), lambda: solo_config(transport="udp")):
        with pytest.raises(ParameterError, match="transport must be one of tls, zenoh, got 'udp'"):
            make()


def test_certificates_must_be_complete(tmp_path):
    endpoint = Endpoint("a", {}, Address("127.0.0.1", 1), tmp_path)
    for name in TRANSPORTS:
        with pytest.raises(ParameterError, match=r"ca.pem is missing; copy the learner's whole"):
            registry.make(name, endpoint)


def test_a_package_that_is_missing_is_named_with_its_extra(folder, monkeypatch):
    for module in ("zenoh", "domkl.mesh.transports.zenoh"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "zenoh", None)
    rule = r"zenoh is not installed; pip install 'domkl\[zenoh\]'"
    with pytest.raises(ParameterError, match=rule):
        registry.make("zenoh", folder.endpoint)


def test_importing_it_loads_no_transport():
    code = (
        "import sys, domkl.mesh.transports.registry, domkl.mesh.config.topology, domkl.cli.main;"
        "heavy = {'asyncio', 'cryptography', 'numba', 'scipy', 'ssl', 'starlette', 'zenoh'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
