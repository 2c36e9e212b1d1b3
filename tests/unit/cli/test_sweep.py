"""`domkl sweep` as its user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas
import polars
import pytest
from mesh_node import DEADLINE

from domkl.cli.main import main
from domkl.experiments.sweep import FORMATS
from domkl.experiments.sweep import plan as unit_module
from domkl.experiments.sweep.spec import read_spec

FILE = """\
[sweep]
trials = 4
[data]
rounds = 12
[[algorithms]]
name = "domkl"
rho = [0.2, 2.0]
[[algorithms]]
name = "last-value"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rho.toml").write_text(FILE)
    return tmp_path


def run(*arguments):
    return main(["sweep", "rho.toml", "--workers", "1", *arguments])


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_table_that_pandas_and_polars_read(here, capsys, suffix):
    assert run("--format", suffix) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split()[:3] == ["algorithm", "rho", "MSE"]
    assert f"wrote domkl-out/rho-001.{suffix}: 12 trials" in err
    path = f"domkl-out/rho-001.{suffix}"
    ours = getattr(pandas, f"read_{suffix}")(path)
    theirs = getattr(polars, f"read_{suffix}")(path)
    assert list(ours.columns) == theirs.columns == [
        "data", "rounds", "graph", "learners", "connect", "algorithm", "rho", "eta_l", "eta_g",
        "weights", "newest_lag", "frequencies", "dtype", "seed",
        "trial", "mse", "rmse", "mae", "r2", "cv", "diverged", "seconds",
    ]  # fmt: skip
    assert len(ours) == len(theirs) == 12
    assert ours["mse"].tolist() == theirs["mse"].to_list()
    assert ours["trial"].tolist() == [0, 1, 2, 3] * 3
    assert ours["rho"].isna().sum() == theirs["rho"].null_count() == 4
    assert theirs["diverged"].dtype == polars.Boolean
    assert ours["diverged"].dtype == bool


def test_a_sweep_agrees_with_simulate(here, capsys):
    """The same trials: the same graphs, features and samples."""
    Path("all.toml").write_text('[sweep]\ntrials = 2\n[[algorithms]]\nname = ["domkl", "alone"]\n')
    assert main(["sweep", "all.toml", "--workers", "1", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    arguments = ["--trials", "2", "--algorithm", "domkl", "--algorithm", "alone", "--json"]
    assert main(["simulate", *arguments]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    for cell, result in zip(cells, results, strict=True):
        assert [cell[key] for key in ("algorithm", "rounds", "mse", "mse_high", "cv")] == [
            result[key] for key in ("algorithm", "rounds", "mse", "mse_high", "cv")
        ]


def test_json_has_the_means_and_where_the_table_is(here, capsys):
    assert run("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["units"], found["units_before"]) == (12, 3, 0)
    assert Path(found["table"]).exists()
    assert [cell["algorithm"] for cell in found["cells"]] == ["domkl", "domkl", "last-value"]
    assert all(cell["trials"] == 4 and cell["mse"] > 0 for cell in found["cells"])


def test_a_second_run_computes_nothing_and_overwrites_nothing(here, capsys, monkeypatch):
    assert run() == 0
    monkeypatch.setattr(unit_module, "simulate", lambda *_, **__: pytest.fail("computed again"))
    assert run() == 0
    assert "3 of 3 units are there already" in capsys.readouterr().err
    first, second = (Path(f"domkl-out/rho-00{n}.csv").read_text() for n in (1, 2))
    assert first == second


def test_a_dry_run_lists_the_units_and_leaves_no_trace(here, capsys):
    assert run("--dry-run") == 0
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()[2:]] == [
        ["domkl", "0.2", "0-3", "to", "do"], ["domkl", "2", "0-3", "to", "do"],
        ["last-value", "0-3", "to", "do"],
    ]  # fmt: skip
    assert "3 of 3 units to do" in err
    assert not Path("domkl-out").exists()
    assert run() == 0
    capsys.readouterr()
    assert run("--dry-run", "--json") == 0
    out, err = capsys.readouterr()
    assert all(unit["is_kept"] for unit in json.loads(out)["units"])
    assert "0 of 3 units to do" in err


def test_an_interrupted_sweep_keeps_what_is_finished(here, capsys, monkeypatch):
    simulate, calls = unit_module.simulate, []

    def impatient(*arguments, **options):
        calls.append(1)
        if len(calls) == 5:  # two to compile, two units
            os.kill(os.getpid(), signal.SIGINT)
        return simulate(*arguments, **options)

    monkeypatch.setattr(unit_module, "simulate", impatient)
    assert run() == 130
    err = capsys.readouterr().err
    assert "2 of 3 units are kept in domkl-out/units; the same command goes on from there" in err
    assert "interrupted" in err
    assert not list(Path("domkl-out").glob("*.csv"))
    monkeypatch.setattr(unit_module, "simulate", simulate)
    assert run("--json") == 0
    assert json.loads(capsys.readouterr().out)["units_before"] == 2


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_keeps_what_is_finished(here):
    Path("rho.toml").write_text(FILE.replace("trials = 4", "trials = 100000"))
    words = [sys.executable, "-m", "domkl.cli.main", "sweep", "rho.toml", "--workers", "2"]
    started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        deadline = time.monotonic() + DEADLINE
        while not list(Path("domkl-out").glob("units/*.npz")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(started.pid, signal.SIGINT)  # as a terminal does, to parent and workers alike
        _, err = started.communicate(timeout=DEADLINE)
    finally:
        started.kill()
    assert started.returncode == 130, err
    assert "units are kept in domkl-out/units" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.toml"], 2, "cannot read the sweep file none.toml: No such file"),
        (["typo.toml"], 2, "typo.toml: algorithms: domkl has no key 'rhoo'; it may have name, rho"),
        (["empty.toml"], 2, "empty.toml: algorithms: rho must not be empty"),
        (["wave.toml"], 3, "data wave: "),
        (["rho.toml", "--workers", "0"], 2, "workers must be an integer >= 1, got 0"),
        (["rho.toml", "--workers", "2", "--cluster", "tcp://h:1"], 2, "exclude each other"),
        (["rho.toml", "--cluster", "host"], 2, "cluster must be an address"),
        (["rho.toml", "--out", ""], 2, "out must name a folder"),
    ],
)
def test_what_cannot_be_is_said_at_once(here, monkeypatch, capsys, arguments, code, message):
    monkeypatch.setenv("DOMKL_DATA", str(here))
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    Path("typo.toml").write_text('[[algorithms]]\nname = "domkl"\nrhoo = 1\n')
    Path("empty.toml").write_text('[[algorithms]]\nname = "domkl"\nrho = []\n')
    Path("wave.toml").write_text('[data]\nname = "wave"\n[[algorithms]]\nname = "domkl"\n')
    assert main(["sweep", *arguments]) == code
    out, err = capsys.readouterr()
    assert message in err
    assert not out
    assert not Path("domkl-out").exists()


def test_parquet_without_pyarrow_is_said_at_once(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("--format", "parquet") == 2
    assert "format parquet needs pyarrow" in capsys.readouterr().err


def test_a_cluster_without_dask_is_said_at_once(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["sweep", "rho.toml", "--cluster", "tcp://host:8786"]) == 2
    assert "a cluster needs Dask: pip install 'domkl[dask]'" in capsys.readouterr().err


def test_the_name_of_a_sweep_names_its_table(here):
    Path("rho.toml").write_text(FILE.replace("[sweep]", '[sweep]\nname = "first try"'))
    assert read_spec("rho.toml").name == "first try"
    assert run() == 0
    assert Path("domkl-out/first try-001.csv").exists()


OWN = """\
[sweep]
trials = 2
[data]
rounds = 12
[algorithms]
name = "own_gossip:Gossip"
pace = [0.25, 1]
"""


def test_an_algorithm_of_the_users_own(own_folder, capsys):
    Path("rho.toml").write_text(OWN)
    assert run("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [cell["pace"] for cell in found["cells"]] == [0.25, 1.0]
    assert [cell["algorithm"] for cell in found["cells"]] == ["own_gossip:Gossip"] * 2
    assert run("--json") == 0
    assert json.loads(capsys.readouterr().out)["units_before"] == 2
    Path("own_gossip.py").write_text(Path("own_gossip.py").read_text() + "# changed\n")
    assert run("--json") == 0  # results of the file as it was are not used
    assert json.loads(capsys.readouterr().out)["units_before"] == 0


@pytest.mark.slow
def test_an_algorithm_of_the_users_own_in_two_processes(own_folder, command, capsys):
    Path("rho.toml").write_text(OWN)
    run_here = [*command, "sweep", "rho.toml", "--json", "--out", "two", "--workers", "2"]
    made = subprocess.run(run_here, capture_output=True, text=True, check=True)
    assert run("--json") == 0
    two, one = json.loads(made.stdout), json.loads(capsys.readouterr().out)
    assert [cell["mse"] for cell in two["cells"]] == [cell["mse"] for cell in one["cells"]]


def test_a_parameter_must_not_have_the_name_of_another_column(own_folder, capsys):
    Path("rho.toml").write_text(OWN.replace("Gossip", "Seeded"))
    assert run() == 2
    assert "own_gossip:Seeded: parameter 'seed' must have another name" in capsys.readouterr().err


def test_a_parameter_that_an_algorithm_has_not(own_folder, capsys):
    Path("rho.toml").write_text(OWN.replace("pace", "rho"))
    assert run() == 2
    assert "own_gossip:Gossip has no key 'rho'; it may have name, pace" in capsys.readouterr().err
