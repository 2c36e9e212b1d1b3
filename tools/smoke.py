"""Try the domkl that is installed, in an empty folder, with nothing of the source tree in reach.

Run by tools/dist.py with `python -I`. Every public name is there, types and shipped data are there,
the simulator, an estimator, the command line and a node work.
"""

import contextlib
import importlib.metadata
import json
import platform
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

import domkl
from domkl.cli.main import main
from domkl.estimators.sklearn import OnlineKernelRegressor


def check_package() -> None:
    """It comes from the environment, is whole, and has the version that it says."""
    assert Path(domkl.__file__).is_relative_to(sys.prefix), domkl.__file__
    assert importlib.metadata.version("domkl") == domkl.__version__
    assert all(getattr(domkl, name) is not None for name in domkl.__all__)
    assert (files("domkl") / "py.typed").is_file()
    assert len(domkl.load_series("traffic").values) == 6500
    assert domkl.load_set("parking", scale="declared").X.shape[1] == 30


def check_learning() -> None:
    """The simulator and an estimator learn."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 4, 2))
    y = np.sin(4 * X[..., 0])
    features = domkl.RandomFeatures.draw(domkl.default_bank(), 2, seed=1)
    run = domkl.simulate(domkl.DOMKRLS(), X, y, domkl.Graph.ring(4), features)
    assert run.mse[-1] < 0.1 * np.var(y)
    model = OnlineKernelRegressor().fit(X.reshape(-1, 2)[:600], y.ravel()[:600])
    assert model.score(X.reshape(-1, 2)[600:], y.ravel()[600:]) > 0.9


def check_commands() -> None:
    """The command is installed; a table and a picture come out."""
    script = Path(sys.executable).with_name("domkl")
    told = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert domkl.__version__ in told.stdout
    words = ["simulate", "--rows", "400", "--trials", "1", "--algorithm", "domkl", "--out", "out"]
    said = subprocess.run([script, *words, "--json"], stdout=subprocess.PIPE, check=True)
    assert json.loads(said.stdout)["results"][0]["algorithm"] == "domkl"
    assert list(Path("out").glob("*.png"))


def check_node() -> None:
    """A mesh can be made, and a node of it learns a file and ends."""
    rows = "\n".join(f"{50 + 10 * np.sin(k / 5):.2f}" for k in range(60))
    Path("load.csv").write_text(f"load\n{rows}\n")
    words = ["--learners", "1", "--target", "load:0:100", "--lags", "3", "mesh"]
    with contextlib.redirect_stdout(sys.stderr):
        assert main(["mesh", "init", *words]) == 0
    command = [sys.executable, "-I", "-m", "domkl", "node", "mesh/learner-1", "--csv", "load.csv"]
    subprocess.run([*command, "--until-end", "--log-file", "node.log"], check=True)


if __name__ == "__main__":
    check_package()
    check_learning()
    check_commands()
    if sys.platform == "linux":
        check_node()
    print(f"domkl {domkl.__version__} works under Python {platform.python_version()}")
