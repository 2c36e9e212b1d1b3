"""What keeps a node from running is found before it runs."""

import json
import os
import resource
import socket
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from mesh_node import mesh_config

from domkl.cli.main import main
from domkl.mesh.config import certificates
from domkl.mesh.config.folder import init_mesh, read_mesh
from domkl.mesh.operate import doctor

NAMES = ("north", "south")


@pytest.fixture
def folder(tmp_path):
    init_mesh(tmp_path / "mesh", mesh_config(NAMES, (NAMES,)))
    return tmp_path / "mesh"


def found(folder):
    return {each.check: each for each in doctor.examine(folder)}


def test_a_sound_mesh_has_no_problem(folder, capsys):
    assert main(["doctor", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("problem")] == []
    assert main(["doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    names = {"versions", "packages", "clock", "descriptors", "compile cache", "disk"}
    assert {each["check"] for each in said["checks"]} == names
    assert said["code"] == 0


def test_of_a_node_only_its_own(folder):
    checks = found(folder / "north")
    assert "certificate of north" in checks
    assert "certificate of south" not in checks


def test_a_port_that_somebody_else_has(folder, capsys):
    address = read_mesh(folder).member("north").address
    with socket.create_server((address.host, address.port)):
        assert main(["doctor", str(folder)]) == 4
    line = next(x for x in capsys.readouterr().out.splitlines() if "ports of north" in x)
    assert line.startswith("problem")
    assert "no node of north answers there" in line


@pytest.mark.parametrize(
    ("days", "verdict", "said"),
    [
        (400, "problem", "not valid before"), (100, "ok", "99 days left"),
        (20, "warning", "19 days left"), (-1, "problem", "expired on"),
    ],
)  # fmt: skip
def test_certificates_that_expire(folder, days, verdict, said):
    """Issued so that so many days of a year are left."""
    now = datetime.now(UTC) + timedelta(days=days - 365)
    certificates.issue(folder / "authority", "north", folder / "north", days=365, now=now)
    finding = found(folder)["certificate of north"]
    assert finding.verdict == verdict
    assert said in finding.text


def test_secrets_that_others_can_read_and_files_that_are_spoiled(folder):
    (folder / "north" / "token").chmod(0o644)
    (folder / "south" / "node.pem").write_text("spoiled")
    checks = found(folder)
    assert checks["certificate of north"].verdict == "warning"
    assert "chmod go=" in checks["certificate of north"].text
    assert checks["certificate of south"].verdict == "problem"
    (folder / "mesh.toml").write_text("queue = many")
    assert found(folder)["mesh file"].verdict == "problem"


def test_an_edit_that_is_not_copied(folder):
    path = folder / "mesh.toml"
    path.write_text(path.read_text() + "# edited")
    assert "domkl mesh apply" in found(folder)["mesh file"].text


def test_a_machine_with_little_of_everything(monkeypatch, tmp_path):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 4096))
    full = SimpleNamespace(f_bavail=1, f_frsize=4096, f_files=10, f_favail=5)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    monkeypatch.setattr(doctor, "NEEDED", ("no-such-package",))
    checks = found(None)
    verdicts = {name: each.verdict for name, each in checks.items()}
    assert verdicts["descriptors"] == verdicts["disk"] == verdicts["packages"] == "problem"
    assert "no-such-package" in checks["packages"].text
    assert doctor._clock(lambda: 0.0).verdict == "problem"
