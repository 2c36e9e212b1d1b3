"""The output of a comparison: table, records, curves, figure."""

import csv
import json

import numpy as np
import pytest

from domkl.experiments import report
from domkl.experiments.compare import Outcome, Setting


@pytest.fixture
def outcomes():
    mse = np.array([[0.4, 0.2], [0.2, 0.1]])
    good = Outcome("domkl", {"rho": 2.0}, (), mse, 0 * mse, "exact", 1.5)
    bad = Outcome("own:Mine", {}, (), mse * np.nan, mse, "exact", 0.5)
    return [good, bad]


def test_the_table_has_means_and_half_widths(outcomes):
    lines = report.as_table(outcomes).splitlines()
    assert lines[0].split() == ["algorithm", "MSE", "±", "95", "%", "CV", "±", "95", "%", "seconds"]
    assert lines[2].split() == ["domkl", "0.15", "0.6353", "0", "0", "1.50"]
    assert lines[3].split()[:3] == ["own:Mine", "-", "-"]


def test_records_have_null_for_what_is_not_finite(outcomes, tmp_path):
    records = report.as_records(outcomes, Setting(), {"data": "made"})
    report.write_json(tmp_path / "a.json", records)
    good, bad = json.loads((tmp_path / "a.json").read_text())["results"]
    assert (good["mse"], bad["mse"], good["data"]) == (pytest.approx(0.15), None, "made")
    assert good["mse_paper_start"] == pytest.approx(0.15 + (1 - 0.3) / 2)


def test_curves_have_a_row_per_round(outcomes, tmp_path):
    report.write_curves(tmp_path / "a.csv", outcomes)
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["round"] for row in rows] == ["1", "2", "1", "2"]
    assert (float(rows[1]["mse"]), rows[2]["mse"]) == (pytest.approx(0.15), "")


@pytest.mark.parametrize("n_rounds", [1, 2])
def test_a_figure_is_drawn_whatever_the_curves(outcomes, tmp_path, n_rounds):
    short = [
        Outcome(each.algorithm, {}, (), each.mse[:, :n_rounds], each.cv[:, :n_rounds], "", 0.0)
        for each in outcomes
    ]
    report.write_figure(tmp_path / "a.png", short, "$\\odd$ title")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
