"""The folder of a mesh: complete or absent, keys for nobody else's eyes, one agreed file."""

import stat
from dataclasses import replace

import pytest

from domkl.errors import DataError, ParameterError
from domkl.mesh.config import certificates, folder
from domkl.mesh.config.file import MeshConfig, read_config
from domkl.mesh.config.folder import (
    add_learner,
    begin_authority,
    init_mesh,
    read_mesh,
    remove_learner,
    retire_authority,
    rotate_keys,
)
from domkl.mesh.config.settings import members_at, next_member
from domkl.mesh.config.topology import named_edges
from domkl.mesh.protocol.model import Range
from domkl.mesh.transports.base import Address


@pytest.fixture
def config():
    names = ("a", "b", "c")
    edges = named_edges("path", names)
    return MeshConfig(members_at(names, ["127.0.0.1"]), edges, Range("y", 0.0, 1.0), lags=2)


@pytest.fixture
def mesh(tmp_path, config):
    init_mesh(tmp_path / "mesh", config)
    return tmp_path / "mesh"


def listing(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_init_makes_all_that_is_needed(tmp_path, mesh, config):
    files = ("ca.pem", "mesh.toml", "node.key", "node.pem", "token")
    learners = [e for n in "abc" for e in (n, *(f"{n}/{f}" for f in files))]
    assert listing(mesh) == sorted(
        [
            *learners,
            "authority",
            "authority/ca.key",
            "authority/ca.pem",
            "mesh.toml",
            "mesh.toml.copied",
        ]
    )
    assert read_mesh(mesh) == config
    for name in "abc":
        assert rights(mesh / name) == 0o700
        assert rights(mesh / name / "node.key") == rights(mesh / name / "token") == 0o600
        assert read_config(mesh / name / "mesh.toml") == config
        assert certificates.common_name(mesh / name / "node.pem") == name
        assert certificates.is_of_newest(mesh / "authority", mesh / name / "node.pem")
    assert rights(mesh / "authority") == 0o700
    assert rights(mesh / "authority" / "ca.key") == 0o600
    assert len({(mesh / n / "token").read_text() for n in "abc"}) == 3
    assert listing(tmp_path)[0] == "mesh"  # no draft is left


def test_init_touches_nothing_that_is_there(tmp_path, config, mesh):
    before = listing(tmp_path)
    with pytest.raises(ParameterError, match=r"folder must be new or empty, got .*mesh; choose"):
        init_mesh(mesh, config)
    assert listing(tmp_path) == before
    (tmp_path / "empty").mkdir()
    init_mesh(tmp_path / "empty", config)
    assert read_mesh(tmp_path / "empty") == config


def test_init_leaves_no_trace_where_it_fails(tmp_path, config, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(certificates, "issue", fail)
    with pytest.raises(ParameterError, match=r"got .*mesh: No space left on device"):
        init_mesh(tmp_path / "deep" / "mesh", config)
    assert listing(tmp_path) == []


def test_some_names_are_taken(tmp_path):
    members = members_at(("authority", "b"), ["127.0.0.1"])
    config = MeshConfig(members, (("authority", "b"),), Range("y", 0.0, 1.0), lags=1)
    with pytest.raises(ParameterError, match="called authority, removed, router, got 'auth"):
        init_mesh(tmp_path / "mesh", config)
    assert listing(tmp_path) == []


def test_add(mesh, config):
    member = next_member(config.members, "d", "127.0.0.1")
    new = add_learner(mesh, member, (("d", "a"),))
    assert new.names == ("a", "b", "c", "d")
    assert new.neighbors("a") == ("b", "d")
    for path in (mesh, *(mesh / n for n in "abcd")):
        assert read_config(path / "mesh.toml") == new
    assert certificates.common_name(mesh / "d" / "node.pem") == "d"
    assert not [p for p in mesh.iterdir() if p.name.startswith(".")]
    with pytest.raises(ParameterError, match="learner must be a new one, got 'd', which is there"):
        add_learner(mesh, member, (("d", "b"),))


def test_add_is_all_or_nothing(mesh, config, monkeypatch):
    member = next_member(config.members, "d", "127.0.0.1")
    with pytest.raises(ParameterError, match="edges must connect all learners"):
        add_learner(mesh, member, ())
    write, count = folder.write_config, iter(range(100))

    def fail_later(path, config):
        if next(count) == 3:
            raise OSError("full")
        write(path, config)

    before = listing(mesh)
    monkeypatch.setattr(folder, "write_config", fail_later)
    with pytest.raises(OSError, match="full"):
        add_learner(mesh, member, (("d", "a"),))
    assert listing(mesh) == before
    assert all(read_config(p / "mesh.toml") == config for p in (mesh, mesh / "a", mesh / "b"))


def test_remove_keeps_the_data_and_not_the_key(mesh):
    (mesh / "b" / "data").mkdir()
    with pytest.raises(ParameterError, match="edges must connect all learners"):
        remove_learner(mesh, "b")
    new, kept = remove_learner(mesh, "b", (("a", "c"),))
    assert new.names == ("a", "c")
    assert kept == mesh / "removed" / "b"
    assert (kept / "data").is_dir()
    assert not (kept / "node.key").exists()
    assert not (mesh / "b").exists()
    assert read_config(mesh / "c" / "mesh.toml") == read_mesh(mesh) == new
    add_learner(mesh, next_member(new.members, "b", "127.0.0.1"), (("b", "a"),))
    assert remove_learner(mesh, "b")[1] == mesh / "removed" / "b-2"
    with pytest.raises(ParameterError, match="learner must be one of a, c, got 'b'"):
        remove_learner(mesh, "b")


def test_rotate_one_or_all(mesh):
    tokens = {name: (mesh / name / "token").read_text() for name in "abc"}
    (mesh / "ui-token").write_text("0123456789abcdef")
    rotate_keys(mesh, keep_tokens=True)
    assert tokens == {name: (mesh / name / "token").read_text() for name in "abc"}
    old = {n: (mesh / n / "node.key").read_bytes() for n in "abc"}
    rotate_keys(mesh, ["b"], days=10)
    changed = [name for name in "abc" if (mesh / name / "token").read_text() != tokens[name]]
    assert changed == ["b"]
    assert (mesh / "ui-token").read_text() == "0123456789abcdef"
    assert [n for n in "abc" if (mesh / n / "node.key").read_bytes() != old[n]] == ["b"]
    assert certificates.expires(mesh / "b" / "node.pem") < certificates.expires(
        mesh / "a" / "node.pem"
    )
    rotate_keys(mesh)
    assert (mesh / "ui-token").read_text() != "0123456789abcdef"
    assert rights(mesh / "a" / "token") == 0o600
    assert all((mesh / n / "node.key").read_bytes() != old[n] for n in "abc")
    assert rights(mesh / "a" / "node.key") == 0o600
    with pytest.raises(ParameterError, match="learner must be one of a, b, c, got 'x'"):
        rotate_keys(mesh, ["x"])


def test_a_new_authority_comes_in_steps(mesh):
    old = (mesh / "a" / "ca.pem").read_text()
    begin_authority(mesh)
    both = (mesh / "a" / "ca.pem").read_text()
    assert old in both
    assert both.count("BEGIN CERTIFICATE") == 2
    with pytest.raises(ParameterError, match="got two; end the last change first"):
        begin_authority(mesh)
    with pytest.raises(ParameterError, match="certificate of a must be of the new authority"):
        retire_authority(mesh)
    rotate_keys(mesh)
    retire_authority(mesh)
    for name in "abc":
        assert old not in (mesh / name / "ca.pem").read_text()


def test_a_router_has_a_folder_too(tmp_path, config):
    with_router = replace(config, transport="zenoh", router=Address("10.0.0.9", 7447))
    init_mesh(tmp_path / "mesh", with_router)
    there = tmp_path / "mesh" / "router"
    assert certificates.common_name(there / "node.pem") == "router"
    assert rights(there) == 0o700
    old = (there / "node.key").read_bytes()
    rotate_keys(tmp_path / "mesh", ["router"])
    assert (there / "node.key").read_bytes() != old
    begin_authority(tmp_path / "mesh")
    assert (there / "ca.pem").read_text().count("BEGIN CERTIFICATE") == 2


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(DataError, match="folder must be one that domkl mesh init made"):
        read_mesh(tmp_path / "none")
