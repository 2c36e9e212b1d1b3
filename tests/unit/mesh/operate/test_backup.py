"""A backup is made while a node runs, and a restored node goes on; nothing is overwritten."""

import asyncio
import gzip
import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from mesh_node import made, mesh_config, prepared, solo_folder, until

from domkl.cli.main import main
from domkl.errors import DataError, ParameterError
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.node.telemetry import state_of
from domkl.mesh.operate import backup
from domkl.mesh.operate.backup import back_up, restore


async def state_after(folder, numbers, meanwhile=lambda k: None):
    """Learn samples one by one; give the state at the end."""
    node = made(folder)
    await node.start()
    for k in numbers:
        await node.intake.accept(prepared(node, [k]))
        meanwhile(k)
    await until(lambda: node.is_idle)
    state = state_of(node, with_digest=True)
    await node.close()
    return state


def names_in(archive):
    with tarfile.open(archive) as tar:
        return set(tar.getnames())


def test_a_restored_node_goes_on_as_if_nothing_had_happened(tmp_path):
    """The backup is made while it runs, between checkpoints."""
    folder, archive = solo_folder(tmp_path), tmp_path / "solo.tar.gz"
    made_at = []

    def meanwhile(k):
        if k == 24:
            made_at.append(back_up(folder, archive).learners)

    whole = asyncio.run(state_after(folder, range(40), meanwhile))
    assert made_at == [{"solo": 25}]
    found = restore(archive, tmp_path / "again" / "solo")
    assert found.learners == {"solo": 25}
    again = asyncio.run(state_after(tmp_path / "again" / "solo", range(25, 40)))
    assert again["n_lost"] == 0
    assert (again["n_accepted"], again["digest"]) == (40, whole["digest"])


def test_many_backups_of_a_node_that_drops_old_parts_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr("domkl.mesh.store.wal.SEGMENT", 200)
    monkeypatch.setattr("domkl.mesh.node.node.SAVE_BYTES", 10**9)
    folder = solo_folder(tmp_path, checkpoint_every=2)
    counts = {}

    def meanwhile(k):
        counts[k] = back_up(folder, tmp_path / f"{k}.tar.gz").learners["solo"]

    asyncio.run(state_after(folder, range(20), meanwhile))
    assert counts == {k: k + 1 for k in range(20)}
    restore(tmp_path / "19.tar.gz", tmp_path / "again" / "solo")
    state = asyncio.run(state_after(tmp_path / "again" / "solo", []))
    assert (state["n_learned"], state["n_lost"]) == (20, 0)


def test_what_is_copied_while_a_node_drops_it_is_copied_again(tmp_path, monkeypatch):
    folder = solo_folder(tmp_path)
    asyncio.run(state_after(folder, range(9)))
    real, tries = backup._copy, []

    def unlucky(data, copy):
        real(data, copy)
        tries.append(copy)
        if len(tries) < 3:
            (copy / "acknowledged").unlink()
            for path in (copy / "journal").iterdir():
                path.write_bytes(path.read_bytes()[:-3] + b"???")
            for path in copy.glob("checkpoint-*"):
                path.unlink()

    monkeypatch.setattr(backup, "_copy", unlucky)
    assert back_up(folder, tmp_path / "a.tar.gz").learners == {"solo": 9}
    assert len(tries) == 3


def test_a_folder_of_version_0_1_is_backed_up_restored_and_goes_on(tmp_path):
    """What docs/howto/upgrade.md tells to do."""
    old = Path(__file__).parents[3] / "data" / "v0.1" / "nodes" / "table"
    shutil.copytree(old, tmp_path / "old" / "table")
    n = back_up(tmp_path / "old" / "table", tmp_path / "a.tar.gz").learners["table"]
    assert n > 0
    restore(tmp_path / "a.tar.gz", tmp_path / "new" / "table")
    ends = [asyncio.run(state_after(tmp_path / k / "table", [])) for k in ("old", "new")]
    assert ends[0]["n_accepted"] == ends[1]["n_accepted"] == n
    assert ends[0]["digest"] == ends[1]["digest"]
    assert ends[1]["n_lost"] == 0


@pytest.fixture
def mesh(tmp_path):
    names = ("north", "south")
    init_mesh(tmp_path / "mesh", mesh_config(names, (names,)))
    return tmp_path / "mesh"


def test_keys_are_in_it_only_if_asked_for(mesh, tmp_path, capsys):
    assert main(["mesh", "backup", str(mesh), str(tmp_path / "a.tar.gz")]) == 0
    assert "keys and tokens are not in it" in capsys.readouterr().err
    assert main(["mesh", "backup", str(mesh), str(tmp_path / "b.tar.gz"), "--with-keys"]) == 0
    assert "whoever has it can join the mesh" in capsys.readouterr().err
    secrets = {"north/node.key", "south/token", "authority/ca.key"}
    assert not secrets & names_in(tmp_path / "a.tar.gz")
    assert secrets <= names_in(tmp_path / "b.tar.gz")
    for name in "ab":
        assert (tmp_path / f"{name}.tar.gz").stat().st_mode & 0o077 == 0
    assert main(["mesh", "restore", str(tmp_path / "b.tar.gz"), str(tmp_path / "new")]) == 0
    for path in mesh.rglob("*"):
        if path.is_file():
            copy = tmp_path / "new" / path.relative_to(mesh)
            assert copy.read_bytes() == path.read_bytes()
            assert copy.stat().st_mode & 0o077 == 0


def test_nothing_is_overwritten(tmp_path):
    folder, archive = solo_folder(tmp_path), tmp_path / "a.tar.gz"
    asyncio.run(state_after(folder, range(3)))
    back_up(folder, archive)
    with pytest.raises(ParameterError, match="archive must be a new file"):
        back_up(folder, archive)
    with pytest.raises(ParameterError, match="archive must be in a folder that is there"):
        back_up(folder, tmp_path / "nowhere" / "b.tar.gz")
    with pytest.raises(ParameterError, match="data must not exist: it is never overwritten"):
        restore(archive, folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mesh.toml").write_text("other")
    with pytest.raises(ParameterError, match=r"mesh\.toml must be as in the backup, and differs"):
        restore(archive, other)
    assert [each.name for each in other.iterdir()] == ["mesh.toml"]


HEAD = {"format": "domkl backup", "version": 1, "domkl": "0", "made": "", "learners": {},
        "has_keys": False, "files": {}}  # fmt: skip


def forged(archive, content, members=(), **changes):
    """An archive of these files with their digests, and of members as they are."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    head = HEAD | {"files": digests} | changes
    with tarfile.open(archive, "w:gz") as tar:
        for name, data in {**content, "backup.json": json.dumps(head).encode()}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in members:
            tar.addfile(member)
    return archive


@pytest.mark.parametrize(
    "name",
    ["sitecustomize.py", "mesh.toml.part", ".bashrc", "data/x.npz", "north/mesh.toml.py",
     "a/b/token", "data/journal/1.log", "data/history/x", "data/journal/../../x", "/mesh.toml",
     "./mesh.toml", "North/mesh.toml", "data/journal", "north/data/data/epoch", "mesh.toml\n", ""],
)  # fmt: skip
def test_only_names_that_a_backup_makes_are_restored(tmp_path, name):
    """0.2: any name that does not lead out of the folder."""
    archive = forged(tmp_path / "a.tar.gz", {name: b"x", "mesh.toml": b"y"})
    with pytest.raises(DataError, match="must be a whole backup of domkl"):
        restore(archive, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["symlink", "link", "device", "fifo", "folder"])
def test_only_regular_files_are_restored(tmp_path, kind):
    types = {"symlink": tarfile.SYMTYPE, "link": tarfile.LNKTYPE, "device": tarfile.CHRTYPE,
             "fifo": tarfile.FIFOTYPE, "folder": tarfile.DIRTYPE}  # fmt: skip
    member = tarfile.TarInfo("token")
    member.type, member.linkname = types[kind], "/etc/passwd"
    digests = {"token": hashlib.sha256(b"").hexdigest()}
    archive = forged(tmp_path / "a.tar.gz", {}, [member], files=digests)
    with pytest.raises(DataError, match="token is missing or damaged"):
        restore(archive, tmp_path / "new")
    assert not (tmp_path / "new" / "token").exists()


def claims(name, size, kind=tarfile.REGTYPE):
    """The start of an archive with a member of this size."""
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "data",
    [
        claims("data/epoch", 2**31),
        claims("data/epoch", 2**62),
        claims("././@LongLink", 2**31, tarfile.GNUTYPE_LONGNAME),
        claims("././@PaxHeader", 2**40, tarfile.XHDTYPE),
        b"".join(claims(f"{k}/epoch", 0) for k in range(20)),
    ],
    ids=["large", "huge", "a long name", "a long header", "many"],
)
def test_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch, data):
    """0.2: without a limit."""
    monkeypatch.setattr(backup, "MAX_FILES", 10)
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(data + bytes(2**20)))
    with pytest.raises(DataError, match="archive must be a backup of domkl"):
        restore(archive, tmp_path / "new")


def test_there_is_a_limit_to_all_files(tmp_path, monkeypatch):
    archive = forged(tmp_path / "a.tar.gz", {"mesh.toml": bytes(600), "data/epoch": bytes(600)})
    monkeypatch.setattr(backup, "MAX_TOTAL", 1000)
    with pytest.raises(DataError, match="is more than a backup can have"):
        restore(archive, tmp_path / "new")


@pytest.mark.parametrize(
    "changes",
    [{"has_keys": []},
     {"learners": 5}, {"learners": {"a": "x"}}, {"learners": {"\x1b[2J": 1}}, {"made": "\n"},
     {"made": 5}, {"files": ["mesh.toml"]}, {"files": {"mesh.toml": 5}}, {"files": None}],
)  # fmt: skip
def test_a_manifest_of_another_form_is_refused(tmp_path, changes):
    """0.2: TypeError after the files were restored."""
    archive = forged(tmp_path / "a.tar.gz", {"mesh.toml": b"y"}, **changes)
    with pytest.raises(DataError, match="must be a whole backup of domkl"):
        restore(archive, tmp_path / "new")


def test_foreign_files_are_not_backed_up(mesh, tmp_path):
    (mesh / "north" / "data" / "history").mkdir(parents=True)
    (mesh / "north" / "data" / "history" / "notes~").write_text("x")
    shutil.copytree(mesh / "north", mesh / "North (copy)")
    back_up(mesh, tmp_path / "a.tar.gz")
    assert not [name for name in names_in(tmp_path / "a.tar.gz") if "~" in name or "(" in name]
    restore(tmp_path / "a.tar.gz", tmp_path / "new")


@pytest.mark.parametrize("how", ["torn", "changed", "outside", "none"])
def test_hostile_and_damaged_archives_are_refused(tmp_path, how):
    archive = tmp_path / "a.tar.gz"
    if how in ("torn", "none"):
        back_up(solo_folder(tmp_path), archive)
        data = archive.read_bytes()
        archive.write_bytes(data[: len(data) // 2] if how == "torn" else b"no archive")
    else:
        name = "../outside" if how == "outside" else "mesh.toml"
        forged(archive, {name: b"x"}, files={name: 64 * "0"})
    with pytest.raises(DataError):
        restore(archive, tmp_path / "deep" / "new")
    assert not (tmp_path / "deep" / "outside").exists()
    assert not (tmp_path / "deep" / "new" / "mesh.toml").exists()
