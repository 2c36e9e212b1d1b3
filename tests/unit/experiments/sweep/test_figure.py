"""The picture of a sweep: which label is the axis, and a line for each of the others."""

import numpy as np

from domkl.experiments.sweep.table import Table, axes_of, write_figure
from domkl.metrics.intervals import Interval

PNG = b"\x89PNG\r\n\x1a\n"


def cell(algorithm, rho, graph="ring", mse=0.1):
    found = Interval(np.array(mse), np.array(-mse), np.array(3 * mse))  # reaches below 0
    return {
        "data": "made", "rounds": 5, "graph": graph, "algorithm": algorithm, "rho": rho, "seed": 1,
        "trials": 2, "mse": found, "cv": found, "diverged": 0, "seconds": mse,
        "rmse": mse * (rho or 3), "mae": mse, "r2": 0.5,
    }  # fmt: skip


def test_the_axis_is_the_number_with_the_most_values(tmp_path):
    cells = [cell("domkl", rho, graph) for rho in (0.1, 1.0, 10.0) for graph in ("ring", "star")]
    cells.append(cell("last-value", None))
    table = Table({"trial": []}, tuple(cells))
    assert axes_of(table) == ("rho", ["graph", "algorithm"])  # errors are no labels
    write_figure(tmp_path / "a.png", table)
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_without_a_number_cells_stand_in_their_order(tmp_path):
    table = Table({"trial": []}, (cell("domkl", 1.0), cell("domkl", 1.0, "star")))
    assert axes_of(table) == (None, ["graph"])
    write_figure(tmp_path / "a.png", table)
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
