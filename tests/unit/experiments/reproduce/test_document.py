"""A report from its JSON alone: numbers, verdicts, pictures, pages."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from domkl.experiments.figures import Figure, Panel, draw, plain, points
from domkl.experiments.reproduce.document import (
    Claim,
    ReportTable,
    Section,
    as_html,
    as_markdown,
    failed,
    joined,
    judged,
    line,
    number,
    tally,
)
from domkl.experiments.reproduce.theorems import growth

CLAIM = Claim("id", "It <works> & is | fine.", "Section 1", "Seen: 1 < 2.")


@pytest.fixture(scope="module")
def document():
    rounds = np.arange(1, 201)
    curve = np.stack([1 / rounds, 0.5 / rounds - 0.001, 2 / rounds])
    few = points("dokl", [5, 10], [np.array([1.0, 0.5, 2.0]), np.array([2.0, 1.0, 3.0])])
    panels = [
        Panel("one", "t", "MSE", [line("domkl", curve), line("comkl", np.zeros((3, 200)))]),
        Panel("two", "K", "CV", [few, points("made", [5, 10], [np.array([1e30] * 3)] * 2)]),
    ]
    table = ReportTable(
        "A <table>", ["name", "value"], [["a|b", 0.012345], ["c", None]], ["A note."]
    )
    section = Section("part", "Part: one", ["Text & more."], [judged(CLAIM, True, ["x"], ["x"])])
    section.tables, section.figures = [table], [Figure("fig", "A figure.", panels, n_columns=2)]
    data = {"name": "x", "rows": 3, "rows_of_paper": 4, "note": "all", "sha256": "ab" * 32}
    made = {
        "domkl": "0", "command": "domkl reproduce all", "seed": 1, "trials": 2, "dtype": "float64",
        "cores": 2, "seconds": {"part": 1.5}, "versions": {"python": "3"}, "data": [data],
        "missing": {"wave": "not <found>"}, "sections": [section.as_json()],
    }  # fmt: skip
    return json.loads(json.dumps(made, allow_nan=False))


def test_numbers_become_what_json_holds():
    found = plain({"a": np.float64(1.23456789), "b": np.array([1, 2]), "c": [np.nan, np.inf, True]})
    assert found == {"a": 1.2346, "b": [1, 2], "c": [None, None, True]}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (3, "3"), ("x", "x"), (0.012345, "0.0123"), (12.345, "12.3"),
     (1234.5, "1234"), (0.000012, "1.20e-05"), (1.69e26, "1.69e+26"), (-0.5, "-0.500")],
)  # fmt: skip
def test_cells_read_well(value, text):
    assert number(value) == text


def test_a_confirmation_needs_all_sets_and_a_counterexample_one():
    assert judged(CLAIM, True, ["a", "b"], ["a", "b"]).verdict == "holds"
    assert judged(CLAIM, True, ["a"], ["a", "b"]).verdict == "cannot be checked here"
    assert "b" in judged(CLAIM, True, ["a"], ["a", "b"]).evidence
    assert judged(CLAIM, False, ["a"], ["a", "b"]).verdict == "does not hold"
    assert judged(CLAIM, False, [], ["a", "b"]).verdict == "cannot be checked here"


def test_a_drawn_curve_keeps_its_ends():
    curve = np.stack([np.arange(1000.0)] * 3)
    made = line("a", curve)
    assert (made.x[0], made.x[-1], len(made.x) <= 70) == (1.0, 1000.0, True)
    assert (made.mean[0], made.mean[-1]) == (0.0, 999.0)


@pytest.mark.parametrize(("power", "c"), [(0.5, 3.0), (1.0, 0.1), (0.0, 2.0)])
def test_growth_is_the_power_of_t(power, c):
    rounds = [100, 300, 1600]
    assert growth(rounds, [c * t**power for t in rounds]) == pytest.approx(power)


def test_names_are_joined():
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b and c"


def test_figures_are_pictures_and_the_same_every_time(document):
    figure = document["sections"][0]["figures"][0]
    svg = draw(figure, "svg")
    assert ET.fromstring(svg).tag.endswith("svg")
    assert draw(figure, "svg") == svg
    assert draw(figure, "png")[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_page_is_whole_and_escaped(document):
    page = as_html(document)
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page) == []
    assert "It &lt;works&gt; &amp; is | fine." in page
    assert "A &lt;table&gt;" in page
    assert "not &lt;found&gt;" in page
    assert page.count("data:image/svg+xml;base64,") == 1
    assert "Of 1 claims of the paper: 1 hold" in page
    body = re.sub(r"<(meta|img|br)\b[^>]*>", "", page[page.index("<html") :])
    ET.fromstring(body)  # tags are closed


def test_the_markdown_page_shows_the_same(document):
    page = as_markdown(document, "images")
    assert "![A figure.](images/fig.png)" in page
    assert r"| a\|b | 0.0123 |" in page
    assert r"It &lt;works> & is \| fine." in page
    assert "Seen: 1 < 2." in page
    assert "A &lt;table>:" in page


def test_a_table_without_rows_is_left_out(document):
    """Issue 21: without fetched data there are such tables, and both pages failed."""
    document = json.loads(json.dumps(document))
    empty = {"caption": "Nothing here", "columns": ["data"], "rows": [], "notes": ["Of nothing."]}
    document["sections"][0]["tables"].append(empty)
    for page in (as_html(document), as_markdown(document, "images")):
        assert "A note." in page
        assert "Nothing here" not in page
        assert "Of nothing." not in page


def test_a_section_whose_data_are_missing_says_so(document):
    (section,) = document["sections"]
    empty = {**section, "id": "empty", "text": ["Run `a <b>`."], "figures": [], "tables": []}
    page = as_html({**document, "sections": [section, empty]})
    shown, silent = page.split('<h2 id="empty">')
    assert "nothing to show" in silent
    assert "nothing to show" not in shown
    assert "Run <code>a &lt;b&gt;</code>." in silent


def test_a_figure_is_as_wide_as_its_panels(document):
    (figure,) = document["sections"][0]["figures"]
    narrow, wide = ({**figure, "n_columns": n} for n in (2, 3))
    assert draw(wide, "svg") == draw(narrow, "svg")


def test_only_claims_of_the_paper_are_counted(document):
    assert failed(document) == []
    document = json.loads(json.dumps(document))
    claims = document["sections"][0]["claims"]
    claims.append({**claims[0], "verdict": "does not hold"})
    claims.append({**claims[0], "verdict": "does not hold", "where": "not in the paper"})
    assert len(failed(document)) == 1
    assert tally(document) == "Of 2 claims of the paper: 1 hold, 1 do not; 1 more are ours"


def test_verdicts_of_a_quick_run_are_marked_everywhere(document):
    quick = {**document, "is_quick": True}
    for page in (as_html(quick), as_markdown(quick, "images")):
        assert "holds (quick)" in page
        assert "may change in a full one" in page
    assert "(quick)" not in as_html(document) + as_markdown(document, "images")
