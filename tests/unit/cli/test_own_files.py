"""Files as users have them, each with one command and no editing; and broken ones."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from domkl.cli.main import main

N = 60


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Figure, "savefig", lambda self, out, **_: out.write(b"png"))
    return tmp_path


def simulate(*words):
    return main(["simulate", "--trials", "1", "--algorithm", "last-value", "--json", *words])


def hour(t):
    return np.datetime64("2024-03-30T20", "h") + t


def german():
    """Semicolons, decimal commas, points for thousands, days first, Windows' encoding."""
    lines = ["Zeit;Last (µW);Kühlung;Wetter;;"]
    for t in range(N):
        date, clock = str(hour(t)).split("T")
        when = f"{'.'.join(reversed(date.split('-')))} {clock}:00"
        lines.append(
            f"{when};1.{t:03d},5;{'' if t % 9 == 4 else t},0;{['heiter', 'trüb'][t % 2]};;"
        )
    lines[4:4] = ["", ";;;;;"]
    Path("last.csv").write_bytes("\r\n".join(lines).replace(";,0", ";").encode("cp1252"))
    words = ["--csv", "last.csv", "--target", "Last (µW)", "--time", "Zeit", "--lags", "3"]
    return words, {
        "learners": 1,
        "step": "1 h",
        "empty_lines": 2,
        "levels": {"Wetter": ["heiter", "trüb"]},
    }


def exported():
    """Tabs, UTF-16, seconds since 1970, two columns of one name, gaps in three spellings."""
    lines = ["stamp\tx\tx\tload"]
    gaps = {7: "NA", 8: "?", 9: "nan"}
    for t in range(N):
        lines.append(f"{1700000000 + 600 * t}\t{t % 5}\t{t % 3}\t{gaps.get(t, t % 11)}")
    Path("export.txt").write_bytes("\n".join(lines).encode("utf-16"))
    words = ["--csv", "export.txt", "--target", "load", "--time", "stamp", "--horizon", "1,3"]
    return words, {"step": "10 min", "renamed": {"x": "x (2)"}, "cells_missing": {"load": 3}}


def packed():
    """A file for each node, packed, with parts of a time, of different length, out of order."""
    for node, first in (("a", 0), ("b", 12), ("c", 5)):
        rows = []
        for t in range(first, N - first // 2):
            when = hour(t).astype("datetime64[s]").item()
            rows.append(f"{when.year},{when.month},{when.day},{when.hour},{t % 7 + first},{t % 4}")
        rows[3], rows[4] = rows[4], rows[3]
        del rows[10]
        text = "\n".join(["year,month,day,hour,y,wind", *rows])
        Path(f"log-{node}.csv.gz").write_bytes(gzip.compress(text.encode()))
    words = ["--csv", "log-{node}.csv.gz", "--target", "y", "--time", "year,month,day,hour"]
    words += ["--inputs", "wind,hour,weekday", "--lags", "1,2,24", "--horizon", "1,6"]
    return words, {"learners": 3, "nodes": ["a", "b", "c"], "out_of_order": 3, "gaps": 3}


def jittered():
    """A column of nodes, times irregular by minutes, repeated rows, places, a word for missing."""
    rng = np.random.default_rng(1)
    rows = []
    for node, place in (("n2", "50.1,8.0"), ("n10", "50.2,8.1"), ("n1", "50.0,8.3")):
        for t in range(N):
            when = np.datetime64("2024-01-01T00:00", "s") + 1800 * t + int(rng.integers(-300, 300))
            rows.append(f"{when},{node},{place},{'off' if t % 13 == 5 else t % 6}")
        rows.append(rows[-1])
    Path("all.csv").write_text("\n".join(['"when","node","lat","lon","y"', *rows]))
    words = [
        "--csv",
        "all.csv",
        "--target",
        "y",
        "--time",
        "when",
        "--nodes",
        "node",
        "--na",
        "off",
    ]
    words += ["--lags", "2"]
    return words, {
        "nodes": ["n1", "n2", "n10"],
        "topology": "nearest",
        "duplicates": 3,
        "step": "30 min",
    }


def american():
    """Months first with AM and PM, quoted thousands, a word for a gap, no column to spare."""
    lines = ["Date,Volume"]
    for t in range(N):
        when = hour(t).astype("datetime64[s]").item()
        volume = "null" if t == 30 else f'"{1000 + 37 * t:,}"'
        lines.append(f"{when:%m/%d/%Y %I:%M %p},{volume}")
    Path("volume.csv").write_text("\n".join(lines))
    words = ["--csv", "volume.csv", "--series", "Volume", "--time", "Date", "--lags", "4"]
    words += ["--time-format", "%m/%d/%Y %I:%M %p", "--rows", "5:50"]
    return words, {"learners": 1, "ticks": 45, "labels_missing": 1, "horizon": 1}


@pytest.mark.parametrize("made", [german, exported, packed, jittered, american])
def test_a_messy_file_runs_with_one_command(capsys, made):
    words, facts = made()
    assert simulate(*words) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    horizons = words[words.index("--horizon") + 1] if "--horizon" in words else "1"
    assert [str(each["horizon"]) for each in results] == horizons.split(",")
    for each in results:
        assert {key: each[key] for key in facts} == facts
        assert 0 < each["rmse"] < np.inf
        assert each["rmse"] ** 2 == pytest.approx(each["mse"] * each["target_divisor"] ** 2)


#: raw files of the shared data, where they lie; each with one command
RAW = {
    "AirQualityUCI.csv.gz": ["--target", "CO(GT)", "--time", "Date,Time", "--na=-200", "--lags=5"],
    "Bias_correction_ucl.csv.gz": ["--target", "Next_Tmax", "--time", "Date", "--nodes", "station"],
    "Metro_Interstate_Traffic_Volume.csv.gz": [
        "--target", "traffic_volume", "--time", "date_time", "--levels", "40", "--lags", "1,24",
    ],
    "nodes/beijing-air/PRSA_Data_{node}_20130301-20170228.csv.gz": [
        "--target", "PM2.5", "--time", "year,month,day,hour", "--lags", "5", "--horizon", "1,6",
    ],
    "nodes/citylearn-homes/Building_{node}.csv.gz": ["--target", "solar_generation", "--lags", "5"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RAW)
def test_a_raw_file_runs_with_one_command(capsys, name):
    folder = Path(os.environ.get("DOMKL_DATA", "absent"))
    if not list(folder.glob(name.replace("{node}", "*"))):
        pytest.skip("DOMKL_DATA has no such file")
    assert simulate("--csv", str(folder / name), "--rows", "400", *RAW[name]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert all(each["rmse"] > 0 for each in results)


HEAD = "t,n,y,x\n"
GOOD = "".join(f"2024-01-{d:02d},a,{d},{d % 3}\n" for d in range(1, 20))
BROKEN = {
    "a word among numbers": (GOOD + "2024-01-20,a,high,1\n", "line 21, column 'y'", "got 'high'"),
    "no date": (GOOD + "soon,a,1,1\n", "line 21, column 't'", "must be a time, got 'soon'"),
    "a day that is none": (GOOD + "2024-02-30,a,1,1\n", "line 21, column 't'", "2024-02-30"),
    "a short row": (GOOD + "2024-01-20,a\n", "line 21", "must have 4 cells as the header, got 2"),
    "a long row": (GOOD + "2024-01-20,a,1,2,3\n", "line 21", "must have 4 cells"),
    "infinity": (GOOD + "2024-01-20,a,1,inf\n", "line 21, column 'x'", "must be finite"),
    "an open quote": (GOOD + '2024-01-20,a,"1,2\n', "line 21", "is no CSV"),
    "no rows": ("", "f.csv", "must have a header and at least one row"),
    "two decimal points": (GOOD + "2024-01-20,a,1.2.3,1\n", "line 21, column 'y'", "got '1.2.3'"),
    "several at once": (
        "2024-01-01,a,1,?\n2024-01-02,a,2,u\n2024-01-32,a,3,1\n2024-01-04,b,v,2\n" + GOOD,
        "3 problems: f.csv line 4, column 't'", "line 5, column 'y': must be a number, got 'v'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_gets_one_line(here, capsys, name):
    text, where, what = BROKEN[name]
    Path("f.csv").write_text(HEAD + text)
    words = ["--csv", "f.csv", "--target", "y", "--time", "t", "--nodes", "n", "--lags", "2"]
    assert simulate(*words) == 3
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = (line for line in err.splitlines() if line.startswith("domkl: error: "))
    for part in ("f.csv", where, what):
        assert part in line
    assert sorted(path.name for path in here.iterdir()) == ["f.csv"]


WRONG = [
    (["--horizon", "50"], 3, "horizon must be below the 19 ticks of the stream, got 50"),
    (["--inputs", "x,y"], 2, "inputs must not have the target 'y' without lag"),
    (["--inputs", "wind"], 3, "f.csv line 1: has no column 'wind'; it has t, n, y, x"),
    (["--learners", "4"], 2, "learners must be 1 for f.csv, one for each node, got 4"),
    (["--horizon", "1,1"], 2, "horizon must not repeat a number"),
    (["--horizon", "soon"], 2, "horizon must be numbers such as 1,6,24, got 'soon'"),
    (["--rows", "0:x"], 2, "rows must be N or first:end:step, got '0:x'"),
    (["--rows", "30:"], 3, "rows must be at least one of 19"),
    (["--hold", "long"], 2, "a duration must be a number with"),
    (["--partition", "blocks"], 2, "partition is for samples to be dealt"),
    (["--topology", "nearest"], 2, "topology nearest is for nodes with places"),
    (["--topology", "ring", "--connect", "0.5"], 2, "connect is for topology random"),
    (["--loss", "logistic"], 2, "loss is a parameter of none of the chosen"),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG)
def test_options_that_cannot_be(here, capsys, words, code, message):
    Path("f.csv").write_text(HEAD + GOOD)
    given = ["--csv", "f.csv", "--target", "y", "--time", "t", "--nodes", "n", "--lags", "2"]
    assert simulate(*given, *words) == code
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["f.csv"]


def test_a_column_called_hour_is_a_column_where_no_time_is_given(here, capsys):
    """It was taken for the calendar's hour, which needs --time: files of CityLearn did not run."""
    for node in "ab":
        rows = "".join(f"{t % 24 + 1},{t % 5}\n" for t in range(40))
        Path(f"{node}.csv").write_text(f"hour,y\n{rows}")
    assert simulate("--csv", "{node}.csv", "--target", "y", "--lags", "2") == 0
    (result, *_) = json.loads(capsys.readouterr().out)["results"]
    assert result["input_names"] == ["y lag 1", "y lag 2", "hour"]


def test_a_series_with_gaps_is_dealt_after_its_lags_are_taken(capsys):
    values = ["NA" if t in (20, 21) else str(t % 7) for t in range(N)]
    Path("gaps.csv").write_text("y\n" + "\n".join(values))
    assert simulate("--csv", "gaps.csv", "--series", "y", "--lags", "2", "--learners", "2") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["rows_left_out"] == {"missing values": 2}
    assert result["rounds"] == (N - 2 - 2) // 2


def test_lags_and_inputs_of_a_table_that_is_dealt(capsys):
    rows = "".join(f"{t % 7},{t % 3}\n" for t in range(N))
    Path("both.csv").write_text("y,x\n" + rows)
    assert simulate("--csv", "both.csv", "--target", "y", "--lags", "3", "--learners", "2") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["input_names"] == ["y lag 1", "y lag 2", "y lag 3", "x"]
    assert result["rounds"] == (N - 3) // 2


def test_the_set_that_ships_is_a_network(capsys):
    assert main(["simulate", "--data", "parking", "--trials", "1", "--rows", "200", "--json",
                 "--algorithm", "last-value"]) == 0  # fmt: skip
    results = json.loads(capsys.readouterr().out)["results"]
    assert [each["horizon"] for each in results] == [1, 4]
    assert [each["horizon_time"] for each in results] == ["30 min", "2 h"]
    for each in results:
        assert (each["learners"], each["topology"], each["target"]) == (30, "circle", "share")
        assert len(each["rmse_by_node"]) == 30


@pytest.mark.slow
def test_two_classes(capsys):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in rng.random((300, 2))]
    Path("answers.csv").write_text("a,b,is\n" + "\n".join(rows))
    words = ["--csv", "answers.csv", "--target", "is", "--learners", "3", "--connect", "0.9"]
    words += ["--frequencies", "10", "--loss", "logistic", "--trials", "1", "--json"]
    assert main(["simulate", "--algorithm", "domkl", *words]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert 0 < result["wrong"] < 0.3
