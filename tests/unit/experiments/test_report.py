"""The output of a comparison: table, records, curves, figure."""

import csv
import json

import numpy as np
import pytest

from domkl.experiments import report
from domkl.experiments.compare import Outcome, Scores
from domkl.experiments.options import Setting


@pytest.fixture
def outcomes():
    mse = np.array([[0.4, 0.2], [0.2, 0.1]])
    ones = np.ones(2)
    scores = Scores(8 * ones, 6 * ones, 0.9 * ones, 0 * ones, np.ones((2, 1)))
    good = Outcome("domkl", {"rho": 2.0}, (), mse, 0 * mse, "exact", 1.5, scores=scores)
    bad = Outcome("own:Mine", {}, (), mse * np.nan, mse, "exact", 0.5)
    return [good, bad]


def test_the_table_has_means_and_half_widths(outcomes):
    lines = report.as_table([report.Part(outcomes, {})]).splitlines()
    heads = "algorithm RMSE MAE R² MSE ± 95 % CV ± 95 % seconds"
    assert lines[0].split() == heads.split()
    assert lines[2].split() == ["domkl", "8", "6", "0.9", "0.15", "0.6353", "0", "0", "1.50"]
    assert lines[3].split()[:3] == ["own:Mine", "-", "-"]


def test_several_horizons_have_a_column(outcomes):
    parts = [report.Part(outcomes, {"horizon": h, "horizon_time": f"{h} h"}) for h in (1, 6)]
    lines = report.as_table(parts).splitlines()
    assert lines[0].split()[:2] == ["algorithm", "ahead"]
    assert [line.split()[1] for line in lines[2:]] == ["1", "1", "6", "6"]
    records = report.as_records(
        [report.Part(outcomes, parts[1].facts | {"data": "made"})], Setting()
    )
    assert [records[0][key] for key in ("horizon", "rmse", "mae", "r2")] == [6, 8, 6, 0.9]


def test_one_learner_has_no_cv(outcomes, tmp_path):
    """Neither a column nor an empty panel."""
    part = report.Part(outcomes[:1], {})
    assert "CV" not in report.as_table([part])
    report.write_figure(tmp_path / "one.png", [part], "one panel")
    report.write_figure(tmp_path / "two.png", [report.Part(outcomes, {})], "two panels")
    one, two = (width_of(tmp_path / f"{name}.png") for name in ("one", "two"))
    assert two > 1.5 * one


def width_of(path):
    return int.from_bytes(path.read_bytes()[16:20])


def test_records_have_null_for_what_is_not_finite(outcomes, tmp_path):
    records = report.as_records([report.Part(outcomes, {"data": "made"})], Setting())
    report.write_json(tmp_path / "a.json", records)
    good, bad = json.loads((tmp_path / "a.json").read_text())["results"]
    assert (good["mse"], bad["mse"], good["data"]) == (pytest.approx(0.15), None, "made")
    assert good["mse_paper_start"] == pytest.approx(0.15 + (1 - 0.3) / 2)


def test_curves_have_a_row_per_round(outcomes, tmp_path):
    report.write_curves(tmp_path / "a.csv", [report.Part(outcomes, {})])
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
    report.write_figure(tmp_path / "a.png", [report.Part(short, {})], "$\\odd$ title")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
