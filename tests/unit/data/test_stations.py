"""Sets of stations: made-up files in the format of beijing-air, written here."""

import gzip
import io
import json
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import domkl
from domkl.cli.main import main
from domkl.data.cache import cached, digest, fetch, locate, not_found, read
from domkl.data.catalog import DATASETS, Station
from domkl.data.forecast import places_of
from domkl.experiments.sweep.plan import make_plan
from domkl.experiments.sweep.spec import read_spec

HEADER = (
    '"No","year","month","day","hour","PM2.5","PM10","SO2","NO2","CO","O3","TEMP","PRES","DEWP",'
    '"RAIN","wd","WSPM","station"'
)
N = 60
STATIONS = (
    Station("North", 40.2, 116.4), Station("Middle", 40.0, 116.4), Station("South", 39.8, 116.4),
    Station("West", 40.0, 116.0), Station("East", 40.0, 117.0),
)  # fmt: skip
GAPS = {"North": (30, 31, 40), "South": (50,)}


def pm(k, t):
    return 10 * k + t


def content(k, n=N, skip=None, gaps=True):
    """Hours from the last day of February on; PM2.5 is 10 k + t."""
    name, lines = STATIONS[k].name, [HEADER]
    start = np.datetime64("2016-02-28T20", "h")
    for t in range(n):
        if t == skip:
            continue
        day = (start + t).astype("datetime64[D]").item()
        hour = (20 + t) % 24
        value = "NA" if gaps and t in GAPS.get(name, ()) else pm(k, t)
        weather = f"{'NA' if t == 33 else t / 10},1000,{-t / 10},0,NA,2.5"
        lines.append(
            f'{t + 1},{day.year},{day.month},{day.day},{hour},{value},1,1,NA,1,1,{weather},"{name}"'
        )
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def made(monkeypatch, cache):
    """A set of five stations under the name of beijing-air."""
    data = DATASETS["beijing-air"]
    editions = tuple(
        replace(
            data.editions[0], name=each.name, file=f"{each.name}.csv", rows=N,
            sha256=digest(content(k)),
        )
        for k, each in enumerate(STATIONS)
    )  # fmt: skip
    toy = replace(data, stations=STATIONS, editions=editions)
    monkeypatch.setitem(DATASETS, "beijing-air", toy)
    return toy


@pytest.fixture
def folder(made, tmp_path):
    """Its files, some packed, in a folder with the name of the set."""
    place = tmp_path / "files" / "beijing-air"
    place.mkdir(parents=True)
    for k, edition in enumerate(made.editions):
        if k % 2:
            (place / f"{edition.file}.gz").write_bytes(gzip.compress(content(k)))
        else:
            (place / edition.file).write_bytes(content(k))
    return place.parent


def archive(contents):
    """An archive within an archive, as UCI's."""
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as packed:
        for name, each in contents.items():
            packed.writestr(f"PRSA_Data/{name}", each)
    with zipfile.ZipFile(outer, "w") as packed:
        packed.writestr("PRSA.zip", inner.getvalue())
    return outer.getvalue()


@pytest.mark.parametrize("horizon", [1, 6])
def test_inputs_and_labels(folder, horizon):
    found = domkl.load_set("beijing-air", horizon=horizon, data_dir=folder)
    n_rounds = N - 23 - horizon
    assert found.X.shape == (n_rounds, 5, 11)
    assert found.y.shape == (n_rounds, 5)
    assert getattr(found.y, "delay", 0) == horizon - 1
    assert len(found.names) == 11
    assert found.stations == tuple(each.name for each in STATIONS)
    t = 45 - 23
    middle = found.X[t, 1]
    np.testing.assert_allclose(middle[:5], [pm(1, 45 - lag) / 500 for lag in (0, 1, 2, 3, 23)])
    weather = [(4.5 + 20) / 60, (1000 - 980) / 65, (-4.5 + 36) / 65, 2.5 / 10]
    np.testing.assert_allclose(middle[5:9], weather)
    turn = 2 * np.pi * ((20 + 45) % 24) / 24
    np.testing.assert_allclose(middle[9:], [(np.sin(turn) + 1) / 2, (np.cos(turn) + 1) / 2])
    np.testing.assert_allclose(found.y[t, 1], pm(1, 45 + horizon) / 500)
    assert json.loads(json.dumps(found.facts, allow_nan=False)) == found.facts


def test_a_missing_label_is_nan_and_in_inputs_the_last_value_holds(folder):
    found = domkl.load_set("beijing-air", data_dir=folder)
    places = np.argwhere(np.isnan(found.y)).tolist()
    assert places == [[30 - 24, 0], [31 - 24, 0], [40 - 24, 0], [50 - 24, 2]]
    assert found.facts["labels_missing"] == 4
    assert found.facts["missing_values"] == {"PM2.5": 4, "TEMP": 5}
    assert not np.isnan(found.X).any()
    np.testing.assert_allclose(found.X[31 - 23, 0, :4], np.array([29, 29, 29, 28]) / 500)
    np.testing.assert_allclose(found.X[33 - 23, :, 5], (3.2 + 20) / 60)


def test_raw_units_and_other_ranges(folder):
    raw = domkl.load_set("beijing-air", scale="none", data_dir=folder)
    np.testing.assert_allclose(raw.X[0, 1, 0], pm(1, 23))
    other = domkl.load_set(
        "beijing-air", scale="declared", ranges={"PM2.5": (0, 50)}, data_dir=folder
    )
    np.testing.assert_allclose(other.y, raw.y / 50)
    assert other.facts["values_outside"]["PM2.5"] > 0


def test_the_stations_run_in_the_simulator(folder):
    found = domkl.load_set("beijing-air", horizon=6, data_dir=folder)
    graph = domkl.Graph.nearest(found.places, 2)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0]), 11, 3, seed=0)
    run = domkl.simulate(domkl.LastValue(), found.X, found.y, graph, features)
    # the newest label known is that of five rounds before the last: what is measured now
    np.testing.assert_allclose(run.predictions[8, 1], found.X[8, 1, 0])
    assert np.isfinite(run.mse).all()


def test_places_are_in_kilometres():
    places = places_of(STATIONS)
    np.testing.assert_allclose(places[0], 0)
    np.testing.assert_allclose(places[1], [0, -22.2], atol=0.1)
    np.testing.assert_allclose(places[4, 0], 0.6 * 111.195 * np.cos(np.radians(40)), rtol=1e-3)


def test_the_catalogs_stations_are_joined_with_the_nearest():
    data = DATASETS["beijing-air"]
    assert len(data.stations) == len(data.editions) == 12
    assert [each.name for each in data.stations] == sorted(each.name for each in data.stations)
    graph = domkl.Graph.nearest(places_of(data.stations), 3)
    assert graph.is_connected
    assert graph.degree.min() >= 3


def test_all_files_or_none(folder, made):
    assert locate(made, folder) == folder / "beijing-air" / "North.csv"
    assert [each.edition.name for each in read(made, folder)] == [each.name for each in STATIONS]
    (folder / "beijing-air" / "South.csv").unlink()
    assert locate(made, folder) is None
    with pytest.raises(domkl.DataError, match="not all files of the data set beijing-air"):
        domkl.load_set("beijing-air", data_dir=folder)
    assert "5 files such as North.csv" in not_found(made, folder)


def test_a_file_of_another_station_or_content_is_refused(folder):
    place = folder / "beijing-air"
    (place / "South.csv").write_bytes(content(0))
    with pytest.raises(domkl.DataError, match=r"South\.csv must be of South, got North"):
        domkl.load_set("beijing-air", data_dir=folder)
    (place / "South.csv").write_bytes(content(2) + b"\n,")
    with pytest.raises(domkl.DataError, match="must have sha256"):
        domkl.load_set("beijing-air", data_dir=folder)


@pytest.mark.parametrize("change", [{"skip": 30}, {"n": N - 1}])
def test_hours_that_a_station_lacks_are_gaps(made, folder, monkeypatch, change):
    wrong = content(2, **change)
    (folder / "beijing-air" / "South.csv").write_bytes(wrong)
    editions = (*made.editions[:2], replace(made.editions[2], sha256=digest(wrong)))
    toy = replace(made, editions=(*editions, *made.editions[3:]))
    monkeypatch.setitem(DATASETS, "beijing-air", toy)
    found = domkl.load_set("beijing-air", data_dir=folder)
    assert found.y.shape == (N - 24, 5)
    assert np.isnan(found.y[change.get("skip", N - 1) - 24, 2])
    assert not np.isnan(found.X).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be an integer >= 1, got 0"),
        ({"target": "TEMP"}, r"target must be one of PM2\.5, got 'TEMP'"),
        ({"scale": "declared", "ranges": {"PM10": (0, 1)}}, "ranges must be of columns in use"),
    ],
)
def test_wrong_options(folder, options, message):
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.load_set("beijing-air", data_dir=folder, **options)


def test_a_horizon_beyond_the_files(folder):
    with pytest.raises(domkl.DataError, match="a label 40 ticks later, got none in 60"):
        domkl.load_set("beijing-air", horizon=40, data_dir=folder)


def test_an_archive_is_fetched_whole(made, cache, tmp_path):
    path = tmp_path / "beijing.zip"
    path.write_bytes(archive({e.file: content(k) for k, e in enumerate(made.editions)}))
    fetched = fetch(made, str(path))
    assert fetched.path == cache
    assert fetched.checked[0] == "5 files"
    assert "sha256 as in the catalog" in fetched.checked
    assert cached(made).sha256 == fetched.sha256
    assert domkl.load_set("beijing-air").X.shape == (N - 24, 5, 11)
    (cache / "South.csv").unlink()
    assert cached(made) is None


def test_files_are_fetched_one_by_one_from_a_folder_of_a_server(made, cache, folder):
    place = folder / "beijing-air"
    for path in place.glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    handler = partial(SimpleHTTPRequestHandler, directory=place)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        fetched = fetch(made, address)
        assert fetched.checked[0] == "5 files"
        assert sorted(path.name for path in cache.glob("*.csv")) == sorted(
            edition.file for edition in made.editions
        )
        assert not list(cache.glob("*.part"))
        (place / "West.csv").unlink()
        for path in cache.glob("*.csv"):
            path.unlink()
        with pytest.raises(domkl.DataError, match=r"West\.csv"):
            fetch(made, address)
        assert not list(cache.glob("*.csv"))
        server.shutdown()


def test_an_archive_that_lacks_a_station_leaves_nothing(made, cache, tmp_path):
    path = tmp_path / "beijing.zip"
    path.write_bytes(archive({e.file: content(k) for k, e in enumerate(made.editions[:4])}))
    with pytest.raises(domkl.DataError, match=r"must have the file East\.csv in it"):
        fetch(made, str(path))
    assert not list(cache.glob("*.csv"))


def test_a_table_of_one_station_is_not_taken_for_all(made, tmp_path):
    path = tmp_path / "North.csv"
    path.write_bytes(content(0))
    with pytest.raises(domkl.DataError, match="must have the file"):
        fetch(made, str(path))


def test_the_command_line_verifies_and_lists(folder, capsys):
    where = ["--data-dir", str(folder)]
    assert main(["data", "verify", "beijing-air", *where]) == 0
    assert capsys.readouterr().out.count(" ok ") == 5
    assert main(["data", "list", *where]) == 0
    assert str(folder / "beijing-air") in capsys.readouterr().out
    (folder / "beijing-air" / "South.csv").unlink()
    assert main(["data", "verify", "beijing-air", *where]) == 3
    assert "not all files" in capsys.readouterr().out
    assert main(["data", "show", "beijing-air"]) == 0
    assert "North: 40.200, 116.400" in capsys.readouterr().out


def test_the_command_line_simulates_stations(folder, tmp_path, capsys):
    words = ["simulate", "--data", "beijing-air", "--data-dir", str(folder), "--trials", "2"]
    words += ["--algorithm", "last-value", "--out", str(tmp_path / "out"), "--json"]
    assert main([*words, "--horizon", "6"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["learners"], result["rounds"], result["scale"]) == (5, 31, "declared")
    assert (result["horizon"], result["connect"], result["partition"]) == (6, None, None)
    assert result["parameters"] == {"newest_lag": 0}
    assert main([*words, "--learners", "5", "--connect", "0.9"]) == 0
    capsys.readouterr()
    wrong = {
        "learners must be 5 for beijing-air, one for each node, got 10": ["--learners", "10"],
        "partition is for samples to be dealt": ["--partition", "blocks"],
        "time is for files of your own": ["--time", "year"],
        "horizon must be an integer >= 1, got 0": ["--horizon", "0"],
    }
    for message, option in wrong.items():
        assert main([*words, *option]) == 2
        assert message in capsys.readouterr().err


def test_a_sweep_takes_the_stations_and_their_graph(folder, tmp_path):
    data = {"name": "beijing-air", "data_dir": str(folder), "horizon": [1, 6], "rounds": 20}
    tables = {"sweep": {"trials": 2}, "data": data, "algorithms": {"name": "domkrls"}}
    table = domkl.sweep(tables, out=tmp_path / "out", workers=1)
    assert len(table) == 4
    (first, _) = table.as_records()
    assert [first[key] for key in ("graph", "learners", "neighbors")] == ["nearest", 5, 3]
    found = domkl.load_set("beijing-air", horizon=6, data_dir=folder)
    cell = make_plan(read_spec(tables)).points[1].combination
    X, y = cell.stream()
    np.testing.assert_array_equal(X, found.X[:20])
    assert y.delay == 5
    np.testing.assert_array_equal(cell.graph(0).edges, domkl.Graph.nearest(found.places, 3).edges)
    other = {**tables, "graphs": {"kind": "ring"}}
    assert make_plan(read_spec(other)).points[0].combination.n_learners == 5
    wrong = {
        "data beijing-air: learners must be 5": {**tables, "graphs": {"learners": 10}},
        "data traffic: a graph of kind nearest needs nodes with places": {
            **tables, "data": {"name": "traffic"}, "graphs": {"kind": "nearest"},
        },
        "partition is for samples to be dealt": {
            **tables, "data": {**data, "partition": "blocks"},
        },
    }  # fmt: skip
    for message, each in wrong.items():
        with pytest.raises(domkl.ParameterError, match=message):
            make_plan(read_spec(each))
