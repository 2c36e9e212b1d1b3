"""Where files are found, what is refused, and what fetching leaves in the cache."""

import fcntl
import json
from dataclasses import replace

import pytest

import domkl
from domkl.data.cache import cached, digest, fetch, locate, read, read_manifest
from domkl.data.catalog import DATASETS
from domkl.data.tables import check_content

TABLE = b"a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,1,1\n"


def left(cache):
    return sorted(path.name for path in cache.iterdir() if path.name != ".lock")


@pytest.fixture
def known(toy, monkeypatch):
    """The toy, with its checksum in the catalog."""
    made = replace(toy, editions=(replace(toy.editions[0], sha256=digest(TABLE)),))
    monkeypatch.setitem(DATASETS, "weather", made)
    return made


def folder(path, name="toy.csv", content=TABLE):
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(content)
    return path


def test_the_order_of_places(known, cache, tmp_path, monkeypatch):
    assert locate(known) is None
    folder(cache)
    assert locate(known) == cache / "toy.csv"
    monkeypatch.setenv("DOMKL_DATA", str(folder(tmp_path / "named")))
    assert locate(known) == tmp_path / "named" / "toy.csv"
    given = folder(tmp_path / "given")
    assert locate(known, given) == given / "toy.csv"
    (given / "toy.csv").unlink()
    assert locate(known, given) == cache / "toy.csv"


def test_plain_and_packed_are_the_same_file(known, tmp_path, packed):
    (plain,) = read(known, folder(tmp_path / "plain"))
    (gz,) = read(known, folder(tmp_path / "gz", "toy.csv.gz", packed))
    assert plain.content == gz.content
    assert plain.sha256 == gz.sha256


def test_what_is_not_found_is_said_with_the_places(known, tmp_path, cache):
    with pytest.raises(domkl.DataError) as caught:
        domkl.load_set("weather", data_dir=tmp_path)
    for word in ("toy.csv", str(tmp_path), str(cache), "domkl data fetch weather", "DOMKL_DATA"):
        assert word in str(caught.value)


def test_a_wrong_checksum_names_both(known, tmp_path):
    place = folder(tmp_path / "bad", content=TABLE + b"2,2,2\n")
    with pytest.raises(domkl.DataError) as caught:
        domkl.load_set("weather", data_dir=place)
    for word in ("bad/toy.csv", digest(TABLE), digest(TABLE + b"2,2,2\n"), "--from"):
        assert word in str(caught.value)


def test_a_file_nobody_knows(toy, tmp_path):
    with pytest.raises(domkl.DataError, match="must have sha256 one recorded when the file was"):
        read(toy, folder(tmp_path / "some"))


def test_a_file_of_the_users_own_is_known_once_fetched(toy, tmp_path):
    place = folder(tmp_path / "some")
    fetch(toy, str(place / "toy.csv"))
    assert read(toy, place)[0].edition.name == "uci"


@pytest.mark.parametrize("cut", [5, -3])
def test_a_truncated_gzip(known, tmp_path, packed, cut):
    place = folder(tmp_path / "cut", "toy.csv.gz", packed[:cut])
    with pytest.raises(domkl.DataError, match=r"toy\.csv\.gz must be a whole gzip file"):
        read(known, place)


def test_a_folder_in_place_of_a_file(known, tmp_path):
    (tmp_path / "toy.csv").mkdir()
    with pytest.raises(domkl.DataError, match=r"toy\.csv must be a file, got a folder"):
        read(known, tmp_path)


def test_a_file_in_place_of_a_folder(known, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(domkl.DataError, match=r"data_dir must be an existing folder, got .*file"):
        read(known, tmp_path / "file")
    monkeypatch.setenv("DOMKL_DATA", str(tmp_path / "none"))
    with pytest.raises(domkl.DataError, match=r"DOMKL_DATA must be an existing folder, got .*none"):
        read(known)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"files": 1}', '{"files": {"a": 1}}'])
def test_a_manifest_that_is_none(cache, text):
    cache.mkdir(parents=True)
    (cache / "manifest.json").write_text(text)
    with pytest.raises(domkl.DataError, match="must be a manifest of domkl; delete it and fetch"):
        read_manifest(cache)


def test_a_half_written_cache(toy, cache):
    """A file that came without its entry, a draft, and an entry without its file."""
    folder(cache, ".domkl-draft", TABLE[:9])
    entry = {"set": "weather", "edition": "uci", "file": "toy.csv", "sha256": digest(TABLE)}
    (cache / "manifest.json").write_text(json.dumps({"files": {"toy.csv": entry}}))
    with pytest.raises(domkl.DataError, match="no file of the data set weather"):
        read(toy)
    folder(cache, content=TABLE[:9])
    with pytest.raises(domkl.DataError, match=f"must have sha256 {digest(TABLE)}, got "):
        read(toy)
    folder(cache)
    assert read(toy)[0].edition.name == "uci"


def test_the_shipped_file_is_what_the_catalog_says(monkeypatch):
    data = DATASETS["traffic"]
    assert read(data)[0].sha256 == data.editions[0].sha256
    other = replace(data, editions=(replace(data.editions[0], sha256="0" * 64),))
    with pytest.raises(domkl.DataError, match="install domkl again"):
        read(other)


def test_the_files_of_the_project(data_dir, cache):
    """Every file that can be had today is known by its checksum and passes its rules."""
    for data in DATASETS.values():
        for found in read(data, data_dir):
            assert found.sha256 == found.edition.sha256
            assert check_content(found.content, data, found.edition, found.place)


def test_drafts_of_a_killed_process_are_removed(toy, cache):
    cache.mkdir(parents=True)
    (cache / ".domkl-abc").write_bytes(TABLE[:9])  # as version 0.1 named them
    (cache / ".toy.csv.123-456.part").write_bytes(TABLE[:9])
    fetch(toy)
    assert left(cache) == ["manifest.json", "toy.csv"]


def test_one_at_a_time(toy, cache):
    cache.mkdir(parents=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(domkl.DataError, match="another domkl is fetching into"):
            fetch(toy)


def test_a_cache_that_cannot_be_written(toy, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(domkl.DataError, match="the cache must be a folder that can be written"):
        fetch(toy)


def test_a_source_that_cannot_be_read(toy, tmp_path):
    for path, why in ((tmp_path / "none.zip", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(domkl.DataError, match=f"cannot read {path}: {why}"):
            fetch(toy, str(path))


def test_what_ships_is_not_fetched():
    with pytest.raises(domkl.DataError, match="traffic ships with domkl"):
        fetch(domkl.DATASETS["traffic"])


def test_a_damaged_file_in_the_cache_is_not_taken_for_fetched(toy, cache):
    fetch(toy)
    (cache / "toy.csv").write_bytes(TABLE[:-3])
    assert cached(toy) is None
    with pytest.raises(domkl.DataError, match=f"must have sha256 {digest(TABLE)}, got "):
        domkl.load_set("weather")
    fetch(toy)
    assert len(domkl.load_set("weather").y) == 4
