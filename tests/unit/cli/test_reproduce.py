"""`domkl reproduce` as its user meets it, on the series that ship with domkl."""

import json
from pathlib import Path

import numpy as np
import pytest

from domkl import DOMKL
from domkl.cli.main import main
from domkl.experiments import reproduce as reproduction
from domkl.experiments.options import Setting
from domkl.experiments.reproduce import PARTS, QUICK_ROWS, theorems
from domkl.experiments.reproduce.session import Session, modules_of
from domkl.experiments.reproduce.tasks import Task
from domkl.experiments.store import Store


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, and no data sets but the shipped ones."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("DOMKL_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
def test_figure_1_on_what_is_there_and_a_second_time_from_the_store(here, capsys, monkeypatch):
    """The second run computes nothing and overwrites nothing."""
    assert main(["reproduce", "figure-1", "--trials", "2"]) == 0
    out, err = capsys.readouterr()
    assert "weather is missing" in err
    assert "cannot be checked here" in out
    folder = Path("domkl-out/reproduce-001")
    document = json.loads((folder / "results.json").read_text())
    assert document["trials"] == 2
    assert sorted(document["missing"]) == [
        "air-quality",
        "conductivity",
        "wave",
        "weather",
    ]
    figure = document["sections"][0]["figures"][0]
    assert [panel["title"] for panel in figure["panels"]] == ["traffic", "temperature"]
    assert "Figure 1" in (folder / "report.html").read_text()
    assert sorted(p.name for p in (folder / "figures").iterdir()) == [
        "figure-1-cv.png", "figure-1-cv.svg", "figure-1-mse.png", "figure-1-mse.svg",
    ]  # fmt: skip

    monkeypatch.setattr(Task, "compute", lambda *_: pytest.fail("computed again"))
    assert main(["reproduce", "figure-1", "--trials", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["sections"] == document["sections"]
    assert Path("domkl-out/reproduce-002/report.html").exists()


def test_a_quick_session_runs_the_first_samples_of_a_stream(here):
    full, quick = (Session(Setting(), Store(here / "units"), None, k) for k in (False, True))
    X = full.stream("traffic").X
    assert len(X) > QUICK_ROWS
    assert np.array_equal(quick.stream("traffic").X, X[:QUICK_ROWS])
    scaled = quick.stream("traffic", scale="minmax")  # as a preparation is made from all of it
    assert len(scaled.y) == len(X)
    task = quick.curves(scaled, "domkl", DOMKL())
    assert np.array_equal(task.arguments["stream"].y, scaled.y[:QUICK_ROWS])
    whole = full.curves("traffic", "domkl", DOMKL()).arguments["stream"]
    assert whole is full.stream("traffic")


@pytest.mark.slow
def test_the_theorems_on_short_streams(here, monkeypatch, capsys):
    monkeypatch.setattr(theorems, "HORIZONS", (60, 120))
    monkeypatch.setattr(theorems, "PANELS", ())
    assert main(["reproduce", "theorems", "--trials", "2"]) == 0
    assert main(["reproduce", "theorems", "--trials", "2", "--strict"]) == 1
    document = json.loads(Path("domkl-out/reproduce-001/results.json").read_text())
    claims = {c["id"]: c for c in document["sections"][0]["claims"]}
    assert claims["lemma-3"]["verdict"] == "does not hold"
    rows = document["sections"][0]["tables"][0]["rows"]
    for _, zeta, printed, below, true, above in rows:
        assert below == pytest.approx(zeta - printed, rel=1e-2)
        assert above >= -1e-9
        assert true <= zeta + 1e-3


def test_a_part_without_any_of_its_data_is_refused(here, capsys):
    assert main(["reproduce", "figure-2", "--trials", "2"]) == 3
    assert "domkl data fetch twitter" in capsys.readouterr().err
    assert not Path("domkl-out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trials", "0"], "trials must be >= 1, got 0"),
        (["--trials", "3"], "each of the two bandwidths of Figure 1, got 3"),
        (["--seed", "-1"], "seed must be"),
        (["--quick", "--trials", "3"], "exclude each other"),
        (["--out", ""], "out must name a folder"),
        (["--threads", "0"], "threads must be"),
    ],
)
def test_wrong_options(here, capsys, arguments, message):
    assert main(["reproduce", "figure-1", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("part", ["stations", "ablation"])
def test_an_installed_package_says_that_studies_need_a_clone(here, capsys, monkeypatch, part):
    monkeypatch.setattr(reproduction, "CLONE", here)
    assert main(["reproduce", part, "--quick"]) == 2
    assert capsys.readouterr().err == (
        f"domkl: error: part {part} needs a clone of the repository, which has the folder"
        " studies/; the installed package has not\n"
    )
    assert not Path("domkl-out").exists()


def test_a_folder_that_cannot_be_made(here, capsys):
    Path("taken").write_text("")
    assert main(["reproduce", "figure-1", "--trials", "2", "--out", "taken"]) == 2
    assert "out must be a folder that can be written" in capsys.readouterr().err


def test_a_folder_of_data_that_is_not_there(here, capsys):
    assert main(["reproduce", "figure-1", "--trials", "2", "--data-dir", "nowhere"]) == 3
    assert "nowhere" in capsys.readouterr().err


def test_a_damaged_file_is_not_taken_for_a_missing_one(here, capsys):
    Path("nothing/Bias_correction_ucl.csv").write_text("station,Date\n1,2\n")
    assert main(["reproduce", "figure-1", "--trials", "2"]) == 3
    err = capsys.readouterr().err
    assert "Bias_correction_ucl.csv" in err
    assert "sha256" in err


def test_an_unknown_part(here, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "figure-3"])
    assert stop.value.code == 2


@pytest.mark.parametrize("part", [name for name in PARTS if not PARTS[name].is_study])
def test_every_part_has_its_sections(part):
    for module in modules_of(part).values():
        assert callable(module.runs)
        assert callable(module.section)
