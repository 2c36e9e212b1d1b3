"""The main job as a user meets it: outputs, errors, interruption."""

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from mesh_node import DEADLINE

from domkl.algorithms.registry import ALGORITHMS
from domkl.cli.main import main

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = ["--trials", "2", "--learners", "3", "--frequencies", "4", "--connect", "0.9"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i % 7},{(i * i) % 5},{(3 * i) % 11}" for i in range(60))
    Path("table.csv").write_text(f"a,b,price\n{rows}\n")
    return tmp_path


@pytest.fixture
def drawn():
    """For a test that is to have the picture itself."""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """Write a file in place of the picture, whose layout takes longer than the runs here."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(Figure, "savefig", lambda self, out, **_: out.write(PNG))


def run(*arguments):
    return main(["simulate", *SMALL, *arguments])


def test_all_algorithms_on_the_shipped_series(here, drawn, capsys):
    assert run("--trials", "2") == 0
    out, err = capsys.readouterr()
    default = [name for name, entry in ALGORITHMS.items() if entry.is_default]
    assert [line.split()[0] for line in out.splitlines()[2:11]] == default
    assert "the first 6500 values" in err
    assert "scale minmax: (v - 125)/7092 of all values" in err
    assert "dokl: sigma^2 = 0.001 in 1, 1000 in 1 of the trials" in out
    found = sorted(p.name for p in Path("domkl-out").iterdir())
    assert found == ["simulate-001.csv", "simulate-001.json", "simulate-001.png"]
    picture = Path("domkl-out/simulate-001.png").read_bytes()
    assert picture.startswith(PNG)
    assert len(picture) > 10_000
    with Path("domkl-out/simulate-001.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["algorithm"] for row in rows} == set(default)
    results = json.loads(Path("domkl-out/simulate-001.json").read_text())["results"]
    last = {row["algorithm"]: float(row["mse"]) for row in rows}
    for result in results:
        assert result["mse"] == pytest.approx(last[result["algorithm"]])
        assert result["rounds"] == (6500 - 5) // 3
        assert result["seconds"] > 0
    single = {r["algorithm"]: r["bandwidths"] for r in results}
    assert single["dokl"] == single["rff-dokl"] == [1e-3, 1e3]
    assert single["domkl"] == []


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_the_report_needs_its_extra_before_anything_is_computed(here, monkeypatch, capsys, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["reproduce", "table-1", "--quick"]) == 2
    assert f"{package} is not installed; pip install 'domkl[reports]'" in capsys.readouterr().err
    assert not Path("domkl-out").exists()


def test_without_the_extra_plots_there_is_all_but_the_picture(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "domkl") == 0
    told = capsys.readouterr()
    assert "no picture: matplotlib is not installed; pip install 'domkl[plots]'" in told.err
    assert "domkl" in told.out
    assert sorted(each.suffix for each in Path("domkl-out").iterdir()) == [".csv", ".json"]


def test_json_is_one_object_with_the_contract(here, capsys):
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "domkl", "--json") == 0
    out = capsys.readouterr().out
    (result,) = json.loads(out)["results"]
    assert result["data"] == "table.csv"
    assert (result["algorithm"], result["learners"], result["rounds"]) == ("domkl", 3, 20)
    assert result["trials"] == 2
    assert result["mse"] > 0
    assert result["cv"] >= 0


def test_quantiles_are_judged_where_an_algorithm_has_them(here, capsys):
    """In the target's units, as the errors; the rest is as without them."""
    named = ["--csv", "table.csv", "--target", "price", "--algorithm", "domkrls"]
    named += ["--algorithm", "domkl"]

    def results(*more):
        assert run(*named, *more, "--json") == 0
        return json.loads(capsys.readouterr().out)["results"]

    (plain, _), (found, without) = results(), results("--quantiles", "0.1,0.5,0.9")
    assert "pinball" not in plain
    assert found["mse"] == pytest.approx(plain["mse"], rel=1e-12)
    assert found["quantiles"] == without["quantiles"] == [0.1, 0.5, 0.9]
    assert 0.05 * found["mae"] < found["pinball"] < found["mae"]
    assert list(found["coverage"]) == ["0.8"]
    assert 0.4 < found["coverage"]["0.8"] < 1
    assert (without["pinball"], without["coverage"]) == (None, {"0.8": None})


def test_the_table_has_the_bands_that_were_asked_for(here, capsys):
    named = ["--csv", "table.csv", "--target", "price", "--algorithm", "domkl"]
    assert run(*named, "--algorithm", "domkrls", "--quantiles") == 0
    head, _, without, found, units = capsys.readouterr().out.splitlines()[:5]
    assert "R²  pinball  50 % band  80 % band  95 % band  " in head
    assert without.split()[4:8] == ["-"] * 4
    assert re.search(r"( +\d+\.\d %){3} ", found)
    assert units == "RMSE, MAE and pinball in units of price, MSE and CV in scaled units"


def test_a_series_of_the_users_own(here, capsys):
    arguments = ["--csv", "table.csv", "--series", "price", "--lags", "2", "--json"]
    assert run(*arguments, "--algorithm", "last-value") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["rounds"] == 58 // 3
    assert result["cv"] == 0  # the newest lag: the same function at every learner


def test_older_results_are_never_overwritten(here, capsys):
    for _ in range(2):
        assert run("--csv", "table.csv", "--target", "price", "--algorithm", "last-value") == 0
    assert len(list(Path("domkl-out").glob("simulate-00[12].*"))) == 6


def test_the_same_seed_gives_the_same_numbers(here, capsys):
    def mse(seed, *more):
        code = run(
            "--csv", "table.csv", "--target", "price", "--algorithm", "domkl", "--json",
            "--seed", seed, *more,
        )  # fmt: skip
        assert code == 0
        return json.loads(capsys.readouterr().out)["results"][0]["mse"]

    assert mse("1") == mse("1", "--threads", "1") != mse("2")


def test_parameters_reach_their_algorithms(here, capsys):
    options = ["--rho", "3", "--eta-l", "0.7", "--eta-g", "5", "--step", "0.1", "--bandwidth", "2"]
    assert run("--csv", "table.csv", "--target", "price", "--json", *options) == 0
    found = {r["algorithm"]: r for r in json.loads(capsys.readouterr().out)["results"]}
    assert found["domkl"]["parameters"]["rho"] == 3
    assert found["alone"]["parameters"]["eta_l"] == 0.7
    assert found["comkl"]["parameters"]["step"] == 0.1
    assert found["rff-domkl"]["parameters"]["eta_g"] == 5
    assert found["dokl"]["bandwidths"] == [2]


def test_the_defaults_are_the_papers(here, capsys):
    """(43) divided by M where eq. (5) asks for it; K, α_c, s and the trials of the main job."""
    assert main(["simulate", "--algorithm", "last-value", "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["results"]
    names = ("learners", "connect", "trials", "frequencies")
    assert [made[name] for name in names] == [10, 0.25, 20, 50]
    domkl_ = ALGORITHMS["domkl"].make()
    assert (domkl_.rho, domkl_.eta_l, domkl_.eta_g) == (100 / 50, 10 / 50, 10)


def test_options_change_what_they_name(here, capsys):
    def mse(*more, csv="table.csv"):
        table = ["--csv", csv, "--target", "price", "--algorithm", "domkl", "--json"]
        assert run(*table, *more) == 0
        return json.loads(capsys.readouterr().out)["results"][0]["mse"]

    plain = mse()
    assert mse("--partition", "blocks") != pytest.approx(plain, rel=1e-3)
    assert mse("--dtype", "float32") != plain
    assert mse("--dtype", "float32") == pytest.approx(plain, rel=1e-4)
    lines = Path("table.csv").read_text().splitlines()
    wide = [lines[0]] + [f"{1000 * int(x[0]) + 7}{x[1:]}" for x in lines[1:]]
    Path("wide.csv").write_text("\n".join(wide))
    assert mse(csv="wide.csv") == pytest.approx(plain)  # inputs are scaled too
    assert mse("--scale", "none", csv="wide.csv") != pytest.approx(plain, rel=1e-3)


def test_both_conventions_are_reported(here, capsys):
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "domkl", "--json") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["mse"] < result["mse_paper_start"] < result["mse"] + 1 / result["rounds"]
    assert result["cv_paper_start"] == pytest.approx(result["cv"] + 1 / result["rounds"])


def test_one_learner_and_one_trial(here, capsys):
    table = ["--csv", "table.csv", "--target", "price"]
    assert run(*table, "--learners", "1", "--trials", "1") == 0
    assert "last-value" in capsys.readouterr().out


def test_records_say_how_the_data_were_made(here, capsys):
    Path("table.csv").rename("$\\odd$.csv")  # a name that a figure must not read as mathematics
    arguments = ["--csv", "$\\odd$.csv", "--target", "price", "--drop", "a", "--json"]
    assert run(*arguments, "--algorithm", "comkl", "--partition", "blocks") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["partition"] == "blocks"
    assert result["drop"] == ["a"]
    assert (result["scale"], result["target_offset"], result["target_divisor"]) == ("minmax", 0, 10)
    assert result["parameters"] == {"step": 0.5, "eta_g": 10.0, "loss": "Squared()"}


def test_a_run_that_diverges_says_so(here, capsys):
    arguments = ["--csv", "table.csv", "--target", "price", "--step", "1e6", "--json"]
    assert run(*arguments, "--algorithm", "rff-domkl", "--algorithm", "last-value") == 0
    diverged, fine = json.loads(capsys.readouterr().out)["results"]
    assert diverged["mse"] > 1e100
    assert diverged["diverged"] == 2
    assert fine["diverged"] == 0


def test_carriage_returns_end_lines(here, capsys):
    Path("old.csv").write_bytes(Path("table.csv").read_bytes().replace(b"\n", b"\r"))
    arguments = ["--target", "price", "--algorithm", "last-value"]
    assert run("--csv", "old.csv", *arguments) == 0


BINARY = ["--csv", "binary.csv", "--target", "b", "--algorithm", "domkrls", "--learners", "1"]
BAD = [
    (["--csv", "none.csv", "--target", "price"], 3, "none.csv: no such file"),
    (["--csv", "table.csv", "--target", "prize"], 3, "no column 'prize'; it has a, b, price"),
    (["--csv", "words.csv", "--target", "b"], 3, "line 3, column 'a': must be a number, got 'x'"),
    (["--csv", "gaps.csv", "--target", "b"], 3, "line 2, column 'a': is empty; --missing drop"),
    (["--csv", "table.csv"], 2, "csv needs either target"),
    (["--csv", "table.csv", "--target", "price", "--series", "a"], 2, "csv needs either"),
    (["--target", "price"], 2, "need a csv file"),
    (["--data", "traffic", "--csv", "table.csv", "--target", "a"], 2, "exclude each other"),
    (["--learners", "0"], 2, "learners must be an integer >= 1, got 0"),
    (["--learners", "9999"], 3, "9999 learners need at least as many samples"),
    (["--connect", "0"], 2, "connect must be in (0, 1], got 0.0"),
    (["--connect", "2"], 2, "connect must be in (0, 1], got 2.0"),
    (["--trials", "0"], 2, "trials must be an integer >= 1, got 0"),
    (["--rho", "-1"], 2, "rho must be > 0, got -1.0"),
    (["--eta-g", "nan"], 2, "eta_g must be > 0, got nan"),
    (["--bandwidth", "0"], 2, "bandwidth must be > 0, got 0.0"),
    (["--frequencies", "0"], 2, "frequencies must be an integer >= 1, got 0"),
    (["--lags", "0"], 2, "lags must be an integer >= 1, got 0"),
    (["--lags", "7000"], 3, "series must be longer than its 7000 lags"),
    (["--seed", "-1"], 2, "seed must be an integer >= 0"),
    (["--threads", "0"], 2, "threads must be an integer >= 1, got 0"),
    (["--rho", "1", "--algorithm", "comkl"], 2, "rho is a parameter of none of the chosen"),
    (["--bandwidth", "1", "--algorithm", "domkl"], 2, "bandwidth is a parameter of none"),
    (["--drop", "a"], 2, "drop is for a table"),
    (["--csv", "quote.csv", "--target", "b"], 3, "is no CSV"),
    (["--learners", "40", "--connect", "0.01"], 2, "no connected graph of 40 learners"),
    (["--quantiles", "0"], 2, "quantiles must be ascending levels in (0, 1), got '0'"),
    (["--quantiles", "1.2"], 2, "quantiles must be ascending levels in (0, 1), got '1.2'"),
    (["--quantiles", "0.9,0.1"], 2, "must be ascending levels in (0, 1), got '0.9,0.1'"),
    (["--quantiles", "half"], 2, "quantiles must be ascending levels in (0, 1), got 'half'"),
    (["--quantiles", ""], 2, "quantiles must be ascending levels in (0, 1), got ''"),
    ([*BINARY, "--loss", "logistic", "--quantiles"], 2, "for a target of numbers, got loss logis"),
    (["--out", ""], 2, "out must name a folder"),
    (["--out", "x" * 300], 2, "out must be a folder that can be written"),
    (["--out", "table.csv"], 2, "out must be a folder that can be written"),
    (["--out", "table.csv/deeper"], 2, "out must be a folder that can be written"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD)
def test_bad_input_is_one_line_and_leaves_nothing(here, capsys, arguments, code, message):
    Path("words.csv").write_text("a,b\n1,1\nx,2\n3,3\n")
    Path("gaps.csv").write_text("a,b\n,1\n2,2\n")
    Path("binary.csv").write_text("a,b\n1,0\n2,1\n3,0\n")
    Path("quote.csv").write_text('a,b\n"1,2\n')
    before = sorted(here.rglob("*"))
    assert run(*arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("domkl: error: ")]
    assert len(lines) == 1
    assert message in lines[0]
    assert "Traceback" not in err
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--data", "rain"],
        ["--scale", "log"],
        ["--learners", "ten"],
    ],
)
def test_unknown_words_are_usage_errors(here, capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    assert "usage: domkl simulate" in capsys.readouterr().err


def test_a_failure_while_writing_leaves_nothing(here, monkeypatch, capsys):
    from domkl.experiments import report

    def fail(path, outcomes):
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "write_curves", fail)
    before = sorted(here.rglob("*"))
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "last-value") == 130
    assert sorted(here.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_at_once_with_130_and_leaves_nothing(tmp_path, threads):
    command = [sys.executable, "-m", "domkl.cli.main", "simulate", "--trials", "2000"]
    command += ["--algorithm", "domkl", "--threads", threads, "--connect", "0.9"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    line = process.stderr.readline()  # printed when the data are read and the folder is ready
    assert re.match(r"traffic: AR\(5\), 10 learners", line)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_while_compiling(tmp_path):
    """In the middle of Numba's work: still 130, no traceback, no file."""
    command = [sys.executable, "-m", "domkl.cli.main", "simulate", "--algorithm", "domkl"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cold")},
    )  # fmt: skip
    for line in process.stderr:
        if line.startswith("compiling"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
    assert not (tmp_path / "domkl-out").exists()


@pytest.mark.slow
def test_an_interrupt_that_python_swallows_still_counts(here, monkeypatch, capsys):
    from domkl.experiments import compare as module

    def swallow(*arguments):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(module, "compile_for", swallow)
    before = sorted(here.rglob("*"))
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "last-value") == 130
    assert sorted(here.rglob("*")) == before


def test_an_interrupt_just_before_writing(here, monkeypatch):
    """Swallowed while the last file is drafted: nothing may appear."""
    from domkl.experiments import report

    write = report.write_json

    def swallow(path, records):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        write(path, records)

    monkeypatch.setattr(report, "write_json", swallow)
    before = sorted(here.rglob("*"))
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "last-value") == 130
    assert sorted(here.rglob("*")) == before


def test_an_interrupt_while_names_are_given_does_not_split_the_set(here, monkeypatch):
    link = Path.hardlink_to

    def interrupted(self, target):
        link(self, target)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "hardlink_to", interrupted)
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "last-value") == 0
    assert len(list(Path("domkl-out").glob("simulate-001.*"))) == 3


@pytest.mark.parametrize("has_links", [True, False])
def test_a_disk_that_fills_while_names_are_given_leaves_nothing(
    here, monkeypatch, capsys, has_links
):
    """The second of three files cannot be had: the first is given back."""
    link, n_calls = Path.hardlink_to, []

    def full(self, target):
        n_calls.append(self)
        if not has_links or len(n_calls) > 1:
            raise OSError(28, "No space left on device")
        link(self, target)

    def copy(draft, path):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "hardlink_to", full)
    monkeypatch.setattr("shutil.copyfile", copy)
    before = sorted(here.rglob("*"))
    assert run("--csv", "table.csv", "--target", "price", "--algorithm", "last-value") == 2
    assert "No space left" in capsys.readouterr().err
    assert sorted(here.rglob("*")) == before


@pytest.mark.slow
def test_closed_streams(here):
    command = f"{sys.executable} -m domkl.cli.main simulate {' '.join(SMALL)} --csv table.csv"
    command += " --target price --algorithm last-value >&- 2>&-"
    assert subprocess.run(["bash", "-c", command], check=False).returncode == 0
    assert len(list(Path("domkl-out").iterdir())) == 3


@pytest.mark.slow
def test_a_terminal_without_plus_minus(here):
    command = [sys.executable, "-m", "domkl.cli.main", "simulate", *SMALL, "--csv", "table.csv"]
    command += ["--target", "price", "--algorithm", "last-value"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert b"last-value" in done.stdout


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(here):
    command = [sys.executable, "-m", "domkl.cli.main", "simulate", *SMALL, "--csv", "table.csv"]
    command += ["--target", "price", "--algorithm", "last-value"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    with process.stderr as stream:
        err = stream.read()
    assert process.wait(timeout=DEADLINE) == 0
    assert "Traceback" not in err


def test_a_season_is_a_parameter_of_the_seasonal_baseline(here, capsys):
    arguments = ["--algorithm", "seasonal-naive", "--algorithm", "linear-pooled", "--json"]
    assert run(*arguments, "--period", "12") == 0
    naive, pooled = json.loads(capsys.readouterr().out)["results"]
    assert naive["parameters"] == {"period": 12}
    assert pooled["cv"] == 0
    assert run("--algorithm", "seasonal-naive", "--period", "0") == 2
    assert "period must be an integer >= 1, got 0" in capsys.readouterr().err


def test_forgetting_is_a_parameter_of_domkrls(here, capsys):
    assert run("--algorithm", "domkrls", "--forget", "0.99", "--json") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["parameters"]["forget"] == 0.99
    assert run("--algorithm", "domkrls", "--forget", "1.5") == 2
    assert "forget must be" in capsys.readouterr().err
    assert run("--algorithm", "domkl", "--forget", "0.9") == 2


def test_an_algorithm_of_the_users_own(own_folder, capsys):
    named = ["--algorithm", "own_gossip:Gossip", "--algorithm", "domkl", "--json"]
    assert run(*named) == 0
    ours, theirs = json.loads(capsys.readouterr().out)["results"]
    assert (ours["algorithm"], theirs["algorithm"]) == ("own_gossip:Gossip", "domkl")
    assert ours["parameters"] == {"pace": 0.5}
    assert 0 < ours["mse"] < 1


@pytest.mark.slow
def test_an_algorithm_of_the_users_own_in_a_process(own_folder, command):
    arguments = ["simulate", *SMALL, "--algorithm", "own_gossip:Gossip", "--json"]
    made = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    (result,) = json.loads(made.stdout)["results"]
    assert result["mse"] > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_gossip:Gosip", "can be imported, got 'own_gossip:Gosip': AttributeError"),
        ("own_gosip:Gossip", "ModuleNotFoundError: No module named 'own_gosip'"),
        ("own_broken:Gossip", "SyntaxError"),
        ("own_gossip:nothing", "must be a subclass of domkl.Algorithm, got 'own_gossip:nothing'"),
        ("own_gossip:State", "must be a subclass of domkl.Algorithm"),
        ("own_gossip:Needy", "must have a default for every parameter, got 'own_gossip:Needy'"),
        (":Gossip", "can be imported, got ':Gossip'"),
        ("gossip", "must be one of domkl, domkrls, "),
    ],
)
def test_algorithms_that_cannot_be_used(own_folder, capsys, name, message):
    assert run("--algorithm", name) == 2
    error = capsys.readouterr().err
    assert error.startswith("domkl: error: algorithm")
    assert message in error


def test_no_file_of_the_current_folder_hides_an_installed_module(own_folder, capsys):
    Path("json.py").write_text("raise RuntimeError")
    Path("numpy.py").write_text("raise RuntimeError")
    assert run("--algorithm", "own_gossip:Gossip") == 0
    assert sys.path[-1] == str(own_folder)
