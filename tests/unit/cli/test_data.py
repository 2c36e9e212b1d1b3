"""`domkl data`, and the sets of the paper in `domkl simulate`."""

import json
from pathlib import Path

import pytest

from domkl.cli.interrupts import Interrupts
from domkl.cli.main import main
from domkl.data.catalog import DATASETS

SMALL = ["--trials", "1", "--learners", "3", "--frequencies", "4", "--connect", "0.9"]


def data(*words):
    return main(["data", *words])


@pytest.fixture
def here(tmp_path, monkeypatch, cache):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def simulate(capsys, *words):
    assert main(["simulate", *SMALL, "--algorithm", "last-value", "--json", *words]) == 0
    out, err = capsys.readouterr()
    return json.loads(out)["results"][0], err


def test_the_list(toy, cache, capsys):
    assert data("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(DATASETS)
    assert [line.split()[-1] for line in lines[1:]] == [
        *["missing"] * 5, "shipped", "shipped", "missing", "missing", "shipped"
    ]  # fmt: skip
    cache.mkdir(parents=True)
    (cache / "toy.csv").write_text("")
    assert data("list", "--json") == 0
    sets = json.loads(capsys.readouterr().out)["sets"]
    assert sets[0]["state"] == "found"
    assert sets[0]["path"] == str(cache / "toy.csv")
    assert sets[5]["rows_of_paper"] == 6500


@pytest.mark.parametrize("name", DATASETS)
def test_show(name, capsys):
    record = DATASETS[name]
    assert data("show", name) == 0
    out = capsys.readouterr().out
    for word in (record.title, record.origin.doi, record.origin.archive, record.origin.licence):
        assert word in out
    assert all(edition.file in out for edition in record.editions)
    assert data("show", name, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["origin"]["doi"] == record.origin.doi
    assert len(made["editions"]) == len(record.editions)


def test_verify(toy, cache, capsys, server):
    assert data("verify") == 0
    out = capsys.readouterr().out
    assert "weather      missing  no file; domkl data fetch weather brings it" in out
    assert "traffic      ok       3 columns as named, 48204 rows" in out
    assert data("verify", "weather") == 3
    assert "weather      failed   no file" in capsys.readouterr().out
    assert data("fetch", "weather") == 0
    capsys.readouterr()
    assert data("verify", "weather", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["files"]
    assert row["state"] == "ok"
    (cache / "toy.csv").write_text("a,b,y\n1,2,3\n")
    assert data("verify") == 3
    assert f"failed   {cache / 'toy.csv'}: " in capsys.readouterr().out


def test_verify_names_what_it_does_not_know(capsys, cache):
    assert data("verify", "moon") == 2
    assert "data set must be one of weather" in capsys.readouterr().err


def test_fetch_and_fetch_again(toy, cache, capsys, server):
    assert data("fetch", "weather", "traffic", "--json") == 0
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["fetched"]
    assert row["path"] == str(cache / "toy.csv")
    assert "traffic ships with domkl" in err
    assert data("fetch", "weather") == 0
    assert capsys.readouterr().out.startswith(f"weather      {cache / 'toy.csv'}: 3 columns")
    assert len(server.requests) == 1  # it was there


def test_fetch_all_goes_on_after_a_failure(toy, cache, capsys, monkeypatch):
    nowhere = toy.origin._replace(archive="http://127.0.0.1:9/")
    wave = type(toy)(**{**vars(toy), "name": "wave", "origin": nowhere})
    two = {"weather": toy, "wave": wave}
    for module in ("domkl.data.catalog", "domkl.cli.data"):
        monkeypatch.setattr(f"{module}.DATASETS", two)
    assert data("fetch", "--all", "--json") == 3
    out, err = capsys.readouterr()
    made = json.loads(out)
    assert [row["name"] for row in made["fetched"]] == ["weather"]
    assert [row["name"] for row in made["failed"]] == ["wave"]
    assert "domkl: error: cannot download" in err


def test_fetch_from_a_file(toy, cache, tmp_path, capsys, packed):
    (tmp_path / "mine.csv.gz").write_bytes(packed)
    assert data("fetch", "weather", "--from", str(tmp_path / "mine.csv.gz")) == 0
    assert (cache / "toy.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "fetch takes names of data sets or --all"),
        (["weather", "--all"], "fetch takes names of data sets or --all"),
        (["weather", "wave", "--from", "x"], "--from is for one data set, got 2"),
        (["--all", "--from", "x"], "--from is for one data set, got all"),
        (["weather", "--from", "ftp://x"], "from must be a file or an http"),
        (["moon"], "data set must be one of"),
    ],
)
def test_fetch_that_cannot_be(words, message, capsys, cache):
    assert data("fetch", *words) == 2
    assert message in capsys.readouterr().err


def test_an_interrupted_fetch_leaves_nothing_and_can_be_repeated(toy, cache, capsys, monkeypatch):
    calls = []

    def check(self):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Interrupts, "check", check)
        assert data("fetch", "weather") == 130
    assert "interrupted" in capsys.readouterr().err
    assert [path.name for path in cache.iterdir()] == [".lock"]
    assert data("fetch", "weather") == 0
    assert (cache / "toy.csv").exists()


def test_simulate_takes_a_set_by_name(here, data_dir, capsys):
    made, err = simulate(capsys, "--data", "weather", "--data-dir", str(data_dir))
    assert (made["data"], made["rounds"], made["target"]) == ("weather", 2530, "Next_Tmax")
    assert made["sha256"] == DATASETS["weather"].editions[0].sha256
    assert made["rows_left_out"] == {"no target": 27, "missing inputs": 135}
    assert "7590 of 7752 rows of Bias_correction_ucl.csv.gz; left out: 27 no target" in err
    other, _ = simulate(
        capsys, "--data", "weather", "--data-dir", str(data_dir), "--target", "Next_Tmin",
        "--rule", "clean", "--scale", "declared", "--partition", "shuffled",
    )  # fmt: skip
    assert (other["target"], other["rule"], other["scale"]) == ("Next_Tmin", "clean", "declared")
    assert other["target_divisor"] == 35
    assert other["values_outside"] == {"LDAPS_RHmax": 1}


def test_simulate_on_a_set_that_is_not_there(here, capsys):
    assert main(["simulate", "--data", "wave"]) == 3
    assert "run domkl data fetch wave, or set DOMKL_DATA" in capsys.readouterr().err
    assert main(["simulate", "--data", "wave", "--data-dir", "nowhere"]) == 3
    assert "data_dir must be an existing folder, got nowhere" in capsys.readouterr().err


def test_declared_ranges_of_an_own_table_and_series(here, capsys):
    rows = "\n".join(f"{i % 7},{(3 * i) % 11}" for i in range(60))
    Path("table.csv").write_text(f"a,price\n{rows}\n")
    Path("ranges.csv").write_text("column,low,high\na,0,10\nprice,0,9\n")
    declared = ["--csv", "table.csv", "--scale", "declared", "--ranges", "ranges.csv"]
    made, err = simulate(capsys, *declared, "--target", "price")
    assert (made["target_divisor"], made["values_outside"]) == (9, {"price": 5})
    assert "scale declared: (v - 0)/9 of price, others likewise; 5 values outside" in err
    made, err = simulate(capsys, *declared, "--series", "price", "--lags", "2")
    assert made["values_outside"] == {"price": 5}
    assert "scale declared: (v - 0)/9 of price, others likewise; 5 values outside" in err


def test_shuffling_follows_the_seed(here, capsys):
    rows = "\n".join(f"{i % 7},{(3 * i) % 11}" for i in range(60))
    Path("table.csv").write_text(f"a,price\n{rows}\n")
    table = ["--csv", "table.csv", "--target", "price", "--partition", "shuffled"]

    def mse(*words):
        return simulate(capsys, *table, *words)[0]["mse"]

    assert mse("--seed", "1") == mse("--seed", "1") != mse("--seed", "2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "weather", "--lags", "2"], "lags is for a time series, got the set weather"),
        (["--data", "weather", "--drop", "lat"], "drop is for a table with target, got the"),
        (["--data", "weather", "--series", "lat"], "target and series need a csv file"),
        (["--target", "temp"], "target and series need a csv file"),
        (["--data", "wave", "--target", "x1"], "target must be one of power_all, got 'x1'"),
        (["--ranges", "r.csv"], "ranges are for scale declared, got scale minmax"),
        (
            ["--csv", "t.csv", "--target", "y", "--scale", "declared"],
            "scale declared needs ranges for a csv file",
        ),
    ],
)
def test_options_that_contradict(here, capsys, words, message):
    assert main(["simulate", *words]) == 2
    assert message in capsys.readouterr().err
