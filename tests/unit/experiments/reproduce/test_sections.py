"""Verdicts follow from outcomes: each claim once true and once false, on made-up outcomes."""

import numpy as np
import pytest

from domkl.experiments.options import Setting
from domkl.experiments.reproduce import (
    beyond,
    claims,
    figure_1,
    figure_2,
    paper,
    table_1,
    theorems,
)
from domkl.experiments.reproduce.document import as_html, figures_of
from domkl.experiments.reproduce.session import SETS, Session
from domkl.experiments.reproduce.tasks import Stream
from domkl.experiments.store import Store


class MadeUp(Session):
    """A session whose results are what ``rule`` says: key of a run → (MSE, CV), or all results."""

    def __init__(self, folder, rule, names=SETS):
        super().__init__(Setting(n_trials=4), Store(folder))
        self.rule, self.names = rule, names

    def available(self, names):
        for name in set(names) - set(self.names):
            self.missing[name] = "not there"
        return [name for name in names if name in self.names]

    def stream(self, name, **options):
        n = 21_263 if options.get("scale") == "none" else 2000
        made = Stream(name, np.zeros((n, 2)), np.arange(float(n)), name in ("traffic",))
        return self.once((name, *sorted(options.items())), lambda: made)

    def results(self, runs):
        found = {key: self.rule(key) for key in runs}
        return {k: v if isinstance(v, dict) else outcome(*v) for k, v in found.items()}


def outcome(mse, cv=0.0, n_rounds=200):
    noise = np.array([-1e-4, 1e-4, -1e-4, 1e-4])
    return {
        "mse": np.full((3, n_rounds), mse), "mse_first": np.ones(4), "mse_last": mse * (1 + noise),
        "cv": np.full((3, n_rounds), cv), "cv_first": np.zeros(4), "cv_last": cv * (1 + noise),
        "weights": np.full(17, 1 / 17), "seconds": np.array(1.0),
    }  # fmt: skip


def verdicts(section):
    return {claim.id: claim.verdict for claim in section.claims}


HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be checked here"


# ---- Table I


def weather(key, mse_factor=1.0, middle=1.0):
    """The printed numbers, with the paper's start taken off."""
    if key in table_1.VARIANTS or table_1.INSTEAD in key:
        return 0.005, 0.001
    if key[0] in table_1.CHOICES:
        return 1.0, 1.0
    _, eta_g, rho = key
    theirs = paper.TABLE_1[eta_g, rho]["weather"]
    scale = {10: 1.0, 100: middle, 1000: 1.0}[rho]
    return mse_factor * scale * theirs[0] / 100, 0.01 / rho


def test_weather_is_judged_by_eta_g_10_and_15_percent(tmp_path):
    near = table_1.section(MadeUp(tmp_path, lambda key: weather(key, 1.14)))
    assert verdicts(near)["table-1-weather"] == HOLDS
    assert "1.14 / 1.14 / 1.14" in near.claims[0].evidence
    far = table_1.section(MadeUp(tmp_path, lambda key: weather(key, 1.16)))
    assert verdicts(far)["table-1-weather"] == FAILS


def test_rho_trades_from_end_to_end(tmp_path):
    made = table_1.section(MadeUp(tmp_path, lambda key: weather(key, middle=5.0)))
    assert verdicts(made)["rho"] == HOLDS
    assert "Not monotone in between: conductivity at eta_g = 10" in made.claims[1].evidence
    flat = MadeUp(tmp_path, lambda key: (0.01, 0.01))
    assert verdicts(table_1.section(flat))["rho"] == FAILS


def test_without_conductivity_rho_stays_open(tmp_path):
    made = table_1.section(MadeUp(tmp_path, weather, names=("weather",)))
    assert verdicts(made) == {"table-1-weather": HOLDS, "rho": OPEN}


def test_one_set_is_enough_to_refute_what_is_said_of_rho(tmp_path):
    flat = MadeUp(tmp_path, lambda key: (0.01, 0.01), names=("weather",))
    assert verdicts(table_1.section(flat))["rho"] == FAILS


def test_the_nearest_preparation_is_named(tmp_path):
    nearest = ("last", "each column by itself", "blocks")

    def rule(key):
        if key[0] not in table_1.CHOICES:
            return weather(key)
        choice, rho = key
        theirs = paper.TABLE_1[10, rho]["conductivity"][0] / 100
        return (theirs if choice == nearest else 3 * theirs), 0.01

    session = MadeUp(tmp_path, rule)
    made = table_1.section(session)
    assert "last rows, features scaled each column by itself, blocks" in made.text[-1]
    table = made.tables[-1]
    assert table.rows[1][:3] == list(nearest)
    assert len(table.rows) == 25


# ---- Figure 1

BASE = {"comkl": (1.0, 0.0), "domkl": (1.1, 0.1), "dokl": (2.0, 0.2), "rff-dokl": (2.1, 0.3),
        "rff-domkl": (1.05, 0.1)}  # fmt: skip


def test_claims_hold_where_they_hold_at_every_step(tmp_path):
    def rule(key):
        return (1.9, 0.3) if key[:2] == ("wave", "rff-dokl") else BASE[key[1]]

    assert verdicts(figure_1.section(MadeUp(tmp_path, rule))) == {
        "figure-1-best": HOLDS,
        "figure-1-near": HOLDS,
        "figure-1-cv": HOLDS,
        "figure-1-neither": HOLDS,
        "comkl-bound": HOLDS,
    }


def test_claims_fail_where_one_set_breaks_them_at_every_step(tmp_path):
    def rule(key):
        broken = {"comkl": (0.8, 0.0), "rff-dokl": (1.0, 0.05), "rff-domkl": (0.7, 0.1)}
        return broken.get(key[1], BASE[key[1]]) if key[0] == "traffic" else BASE[key[1]]

    found = verdicts(figure_1.section(MadeUp(tmp_path, rule)))
    assert found["figure-1-best"] == FAILS
    assert found["figure-1-near"] == FAILS
    assert found["figure-1-cv"] == FAILS
    assert found["figure-1-neither"] == HOLDS
    assert found["comkl-bound"] == FAILS


def test_what_depends_on_the_step_is_left_open(tmp_path):
    def rule(key):
        return (2.1, 0.01) if key[1:] == ("rff-dokl", 0.05) else BASE[key[1]]

    made = figure_1.section(MadeUp(tmp_path, rule))
    found = verdicts(made)
    assert (found["figure-1-cv"], found["figure-1-best"]) == (OPEN, OPEN)
    assert found["figure-1-near"] == HOLDS
    assert "the paper does not say which it used" in made.claims[2].evidence


# ---- Figure 2


def sizes(mse, cv_half, cv_fixed):
    def rule(key):
        name, k = key
        cv = {"comkl": lambda k: 0.0, figure_2.HALF: cv_half, figure_2.FIXED: cv_fixed}[name]
        return mse(k), cv(k)

    return rule


def test_network_size(tmp_path):
    flat = sizes(lambda k: 1.0, lambda k: 0.01 / k, lambda k: 0.001 * k)
    assert set(verdicts(figure_2.section(MadeUp(tmp_path, flat))).values()) == {HOLDS}
    steep = sizes(lambda k: 1.0 + k, lambda k: 0.01 * k, lambda k: 0.01 / k)
    assert set(verdicts(figure_2.section(MadeUp(tmp_path, steep))).values()) == {FAILS}
    absent = figure_2.section(MadeUp(tmp_path, flat, names=()))
    assert set(verdicts(absent).values()) == {OPEN}


def test_the_fixed_degree_has_probability_5_over_k(tmp_path):
    runs = figure_2.runs(MadeUp(tmp_path, lambda key: (1.0, 1.0)))
    found = {
        name: [runs[name, k].arguments["setting"].connection for k in (5, 10, 100)]
        for name in (figure_2.FIXED, figure_2.HALF)
    }
    assert found == {figure_2.FIXED: [1.0, 0.5, 0.05], figure_2.HALF: [0.5, 0.5, 0.5]}


# ---- claims of the text


def text_rule(key, changed):
    if key == "privacy":
        return {"x_error": np.array([changed.get("x_error", 1e-9)]), "y_error": np.zeros(1)}
    return changed.get(key, changed.get(key[1], (1.0, 0.1)))


def test_claims_of_the_text_hold(tmp_path):
    session = MadeUp(tmp_path, lambda key: text_rule(key, {"x_error": 1.0}))
    found = verdicts(claims.section(session))
    assert set(found.values()) == {HOLDS}
    assert set(found) == {"best-kernel", "eta-l", "partitions", "messages", "privacy"}


@pytest.mark.parametrize(
    ("broken", "changed"),
    [
        ("best-kernel", {("wave", ("dokl", 1.0)): (0.9, 0.1)}),
        ("best-kernel", {("wave", "domkl"): (1.0, 0.2)}),
        ("eta-l", {("traffic", ("eta_l", 100)): (1.2, 0.1)}),
        ("eta-l", {("traffic", ("eta_l", 1)): (1.0, 0.2)}),
        ("partitions", {("twitter", "shuffled"): (1.2, 0.1)}),
        ("messages", {("temperature", "message-passing"): (1.02, 0.1)}),
        ("privacy", {"x_error": 1e-9}),
    ],
)
def test_each_claim_of_the_text_can_fail(tmp_path, broken, changed):
    session = MadeUp(tmp_path, lambda key: text_rule(key, {"x_error": 1.0, **changed}))
    found = verdicts(claims.section(session))
    assert [claim for claim, verdict in found.items() if verdict == FAILS] == [broken]


def test_message_passing_is_compared_in_the_right_direction(tmp_path):
    better = {"message-passing": (0.9, 0.2), "x_error": 1.0}
    made = claims.section(MadeUp(tmp_path, lambda key: text_rule(key, better)))
    (evidence,) = [claim.evidence for claim in made.claims if claim.id == "messages"]
    assert "better in MSE on conductivity" in evidence
    assert "worse in CV on conductivity" in evidence
    assert "at most 0.900 times" in evidence


# ---- theorems


def regret_rule(key, *, accuracy=0.5, discrepancy=0.5, long_gap=0.5):
    group, n_rounds = key
    if group in (theorems.LONG, theorems.STAR) or group[1] == "gaps":
        power = long_gap if group == theorems.LONG else 0.5
        return {"squares": np.array([n_rounds**power]), "largest": np.array([0.1])}
    is_one, is_two = group == theorems.ONE_KERNEL, group == "two neighbors"
    loss = np.ones((1, 2, 1 if is_one else 2))
    if is_two and accuracy == 1.0:
        loss = np.array([[[0.0, 900.0], [900.0, 0.0]]])  # they disagree
    each = np.full((1, 2), float(n_rounds) ** (accuracy if is_one or is_two else 0.5))
    apart = np.full((1, 2), float(n_rounds) ** discrepancy)
    return {
        "accuracy": each, "network_accuracy": each.sum(1), "loss": loss,
        "discrepancy": apart, "network_discrepancy": apart.sum(1),
    }  # fmt: skip


def test_theorems_that_hold(tmp_path):
    made = theorems.section(MadeUp(tmp_path, regret_rule))
    assert set(verdicts(made).values()) == {HOLDS}
    assert len(made.claims) == 7


def test_theorems_that_fail(tmp_path):
    linear = MadeUp(tmp_path, lambda key: regret_rule(key, accuracy=1.0))
    found = verdicts(theorems.section(linear))
    assert (found["theorem-1a"], found["theorem-2a"], found["lemma-3"]) == (FAILS, FAILS, FAILS)
    assert (found["theorem-1b"], found["theorem-2b"], found["a4"]) == (HOLDS, HOLDS, HOLDS)
    apart = MadeUp(tmp_path, lambda key: regret_rule(key, discrepancy=1.0))
    found = verdicts(theorems.section(apart))
    assert (found["theorem-1b"], found["theorem-2b"], found["theorem-2a"]) == (FAILS, FAILS, HOLDS)


def test_a4_is_judged_by_the_long_series(tmp_path):
    session = MadeUp(tmp_path, lambda key: regret_rule(key, long_gap=1.0))
    assert verdicts(theorems.section(session))["a4"] == FAILS


# ---- all of it


def test_issue_21_the_report_on_the_shipped_data_alone(tmp_path):
    """Every section and the page are made from the two series that ship."""

    def rule(key):
        if isinstance(key, tuple) and isinstance(key[1], int):
            return regret_rule(key)
        return text_rule(key, {})

    session = MadeUp(tmp_path / "units", rule, names=("traffic", "temperature"))
    parts = (table_1, figure_1, figure_2, claims, theorems, beyond)
    sections = [part.section(session).as_json() for part in parts]
    document = {
        "domkl": "0", "command": "domkl reproduce all --quick", "seed": 1, "trials": 4,
        "dtype": "float64", "cores": 2, "seconds": {}, "versions": {}, "data": [],
        "missing": session.missing, "sections": sections, "is_quick": True,
    }  # fmt: skip
    figures = figures_of(document)
    assert all(figure["panels"] and figure["panels"][0]["lines"] for figure in figures)
    page = as_html(document, {figure["id"]: b"drawn" for figure in figures})
    assert "weather is missing" in page
    assert "cannot be checked here" in page
    assert any(not table["rows"] for section in sections for table in section["tables"])


# ---- beyond


@pytest.mark.parametrize(
    ("broken", "changed"),
    [
        ([], {}),
        (["beyond-linear"], {("wave", "last-value"): (0.5, 0.0)}),
        (["beyond-alone"], {("wave", "alone"): (0.5, 0.0)}),
        (
            ["beyond-linear", "beyond-server", "beyond-domkrls"],
            {("wave", "linear-rls"): (0.5, 0.0)},
        ),
        (["beyond-domkrls"], {("wave", "domkrls alone"): (0.5, 0.0)}),
    ],
)
def test_simpler_methods(tmp_path, monkeypatch, broken, changed):
    monkeypatch.setattr(beyond, "rivals", dict)

    made = beyond.section(MadeUp(tmp_path, lambda key: changed.get(key, (1.0, 0.1))))
    found = verdicts(made)
    assert [claim for claim, verdict in found.items() if verdict == FAILS] == broken
    assert "domkl[lightgbm]" in made.text[-2]
    assert "domkl[river]" in made.text[-1]
    rows = {row[0]: row[1:] for row in made.tables[0].rows}
    is_series = [column == "traffic" for column in made.tables[0].columns[1:]]
    assert [cell != "–" for cell in rows["seasonal-naive"]] == is_series
    assert "–" not in rows["linear-rls pooled"]
