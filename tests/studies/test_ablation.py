"""The ablation of DOMKRLS: its edits fit the package, and a variant is a package of its own."""

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import domkl
from domkl.cli.main import main
from domkl.core.jit import COMPILED
from domkl.errors import ParameterError
from domkl.experiments.options import Setting
from domkl.experiments.reproduce import case_studies

case_studies()  # so that they can be imported

from studies import ablation  # noqa: E402
from studies.ablation import WRONG, Stream, cells, edited, measure, texts_of  # noqa: E402
from studies.nodes import Nodes  # noqa: E402

VARIANTS = {name: edits for each in ablation.groups().values() for name, edits in each.items()}
CONSTANTS = {k: v for group in ("constants", "bands") for k, v in ablation.groups()[group].items()}
LAW = (
    "algorithms/least_squares.py", "algorithms/mixtures.py", "core/belief.py", "core/quantiles.py",
    "core/seasons.py",
)  # fmt: skip
#: guards against a division by zero, and what is promised rather than chosen
NOT_CHOSEN = {"LEAST_WEIGHT", "LEAST_CURVATURE", "LEAST_DEVIATION", "LEAST", "MOST", "NORMAL"}
#: numbers of which only one kind of stream knows, which were tried on those alone
NOT_CHOSEN |= {"DELAYED", "TURN"}


def module_of(place):
    name = place.removesuffix(".py").replace("/", ".")
    return importlib.import_module(f"domkl.{name}")


# ---- edits


@pytest.mark.parametrize("name", VARIANTS)
def test_edits_fit_the_package(name):
    """What an edit changes is there, the result is Python, and binaries have another stamp."""
    for place, text in texts_of(ablation.with_factor(VARIANTS[name], 0.5)).items():
        compile(text, place, "exec")
        assert text != (ablation.PACKAGE / place).read_text()
        assert place.split("/")[0] in COMPILED


@pytest.mark.parametrize("place", LAW)
def test_every_chosen_number_of_the_law_is_among_the_constants(place):
    numbers = {
        name
        for name, value in vars(module_of(place)).items()
        if name.isupper() and isinstance(value, float) and name in ablation._set_in(source(place))
    }
    assert numbers
    changed = " ".join(edit[1] for edits in CONSTANTS.values() for edit in edits)
    assert {name for name in numbers if f"{name} *=" not in changed} <= NOT_CHOSEN


@pytest.mark.parametrize("name", [k for k in CONSTANTS if re.fullmatch(r"[A-Z_]+ = [\d.]+", k)])
def test_a_constant_is_shown_with_its_value(name):
    ((place, _),) = CONSTANTS[name]
    word, value = name.split(" = ")
    assert getattr(module_of(place), word) == float(value)


def source(place):
    return (ablation.PACKAGE / place).read_text()


def test_an_edit_of_what_is_gone_is_refused():
    text = "import math\nfrom x import FAR\nNEAR, FEW = 1.0, np.array([1, 2])\n"
    assert edited(text, ["a.py", "FEW[1] *= 2"]).endswith("\nFEW[1] *= 2\n")
    assert "NEAR, MANY =" in edited(text, ["a.py", "FEW", "MANY"])
    for gone in (["FAR = 0.0"], ["GONE *= 2"], ["gone", "1"]):
        with pytest.raises(ParameterError, match=r"must change what is in a\.py, got"):
            edited(text, ["a.py", *gone])


# ---- a variant


def stream(is_spoiled=False):
    rng = np.random.default_rng(3)
    X = rng.random((60, 3, 2))
    y = X[..., 0] + np.sin(3 * X[..., 1])
    if is_spoiled:
        y[30, 1] = 1000.0
    setting = Setting(n_learners=3, connection=0.9, n_trials=2)
    made = Stream.of(Nodes(X, y, None, 1, 1.0, 0.0), None, setting)
    is_scored = np.abs(y) < 10
    return replace(made, is_scored=is_scored)


@pytest.mark.slow
def test_a_variant_differs_by_its_edits_only_and_keeps_its_binaries_to_itself(
    tmp_path, monkeypatch
):
    """Without doubt, labels that are right are learned as by the package, to the bit."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "usual"))
    given = {"right": stream(), "wrong": stream(is_spoiled=True)}
    found = measure(lambda share: None, VARIANTS["labels are doubted"], True, **given)
    ours = [each.errors(True) for each in given.values()]
    for name in ("n", "rmse", "late rmse", "pinball"):
        np.testing.assert_array_equal(found[name][0], ours[0][name])
    assert found["n"][1].tolist() == [179, 179]
    assert (found["rmse"][1] > 10 * ours[1]["rmse"]).all()
    assert not (tmp_path / "usual").exists()


def test_the_process_of_a_variant_refuses_to_run_the_package_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="is not the variant"):
        ablation.run_copy()


# ---- the tables


def errors(**given):
    return {"n": np.full((3, 2), 9), **{k: np.array(v, float) for k, v in given.items()}}


def test_cells():
    names = ["a", WRONG[0], "b"]
    full = errors(rmse=[[1, 1], [1, 1], [2, 2]], **{"late rmse": np.ones((3, 2))})
    ours = errors(rmse=[[2, 2], [3, 3], [1, 4]], **{"late rmse": [[1, 1], [5, 5], [4, 4]]})
    mean, spread, worst, late, wrong = cells(ours, full, names, "rmse")
    assert (mean, late, wrong) == ("1.4142", "2.0000", "3.0000")
    assert spread.startswith("0.0")
    assert worst == "2.000 (a)"
    ours["n"][2, 0] = 8  # a prediction that is not finite
    assert cells(ours, full, names, "rmse")[2] == "inf (b)"


def test_pinball_of_bands():
    """Of a label that is the prediction: Σ_α α z_α σ over seven levels, both tails alike."""
    found = ablation.pinball(np.zeros((1, 2, 1)), np.array([[[2.0], [np.inf]]]))
    assert found[0] == pytest.approx(2 * 2 * (0.025 * 1.96 + 0.1 * 1.282 + 0.25 * 0.674) / 7)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOMKL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def made_up(report, edits, has_bands, **given):
    size = 2.0 if edits else 1.0
    shape = (len(given), next(iter(given.values())).setting.n_trials)
    names = [f"{late}{key}" for late in ("", "late ") for key in ("rmse", "pinball")]
    return {"n": np.ones(shape), **{name: np.full(shape, size) for name in names}}


def test_the_command_prints_the_tables_that_are_asked_for(here, monkeypatch, capsys):
    monkeypatch.setattr(ablation, "measure", made_up)
    asked = ["--only", "mixture b", "--only", "bands"]
    assert main(["reproduce", "ablation", "--quick", "--threads", "1", *asked]) == 0
    out = capsys.readouterr().out
    assert "| mixture b | 2.0000 | 2.0000 to 2.0000 | 2.000 (traffic) | 2.0000 | 2.0000 |" in out
    assert "| NOISE_FADE = 0.03, half | 2.0000 |" in out
    assert "LEAK" not in out
    document = json.loads(Path("domkl-out/reproduce-001/results.json").read_text())
    assert document["trials"] == 2
    assert document["command"] == (
        "domkl reproduce ablation --quick --only 'mixture b' --only bands"
    )


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("ablation", "only must be one of parts, mixture m,"),
        ("stations", "--only is for part ablation, got stations"),
    ],
)
def test_what_is_not_there_cannot_be_asked_for(here, capsys, part, message):
    assert main(["reproduce", part, "--only", "nothing"]) == 2
    assert message in capsys.readouterr().err


def test_streams_are_dealt_cut_and_spoiled(here):
    from domkl.experiments.reproduce.session import Session
    from domkl.experiments.store import Store

    session = Session(Setting(n_trials=2), Store(Path("units")))
    found = ablation.streams(session)
    assert {"traffic", "traffic, blocks", "random walks", "parking, h = 4"} <= set(found)
    assert "weather" in session.missing
    assert found["traffic"].nodes.y.shape == (ablation.N_ROUNDS, 10)
    assert found["traffic"].algorithm == domkl.DOMKRLS(newest_lag=0)
    assert found["parking, h = 4"].nodes.delay == 3
    for name in WRONG:
        assert 0.005 < 1 - found[name].is_scored.mean() < 0.02
    assert set(ablation.QUICK) <= set(found)
