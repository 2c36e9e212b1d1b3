"""The paper's table, figures and claims, reproduced.

Each module named after a part (`table_1`, `figure_1`, …) has two functions: ``tasks(session)`` says
what must be calculated, ``section(session)`` makes a section of the report from the results. The
case study of real nodes has a module for each section: `stations` and those that its docstring
names.
`session.py` holds what they share, `tasks/` the calculations, `paper.py` the printed numbers,
`document.py` the data structure of a report, `page.py` its HTML and Markdown form, and `run.py`
runs it all.
"""

from typing import NamedTuple


class Part(NamedTuple):
    """What the user can ask for."""

    summary: str
    sections: tuple[str, ...]
    trials: int = 500  # unless the user says otherwise
    quick_trials: int = 4
    halves: bool = True  # half of the trials use each of the two bandwidths of Figure 1


_SECTIONS = ("table-1", "figure-1", "figure-2", "claims", "theorems", "beyond")
_NODES = ("stations", "newcomer", "day-ahead", "homes", "parking")

PARTS = {
    "table-1": Part("MSE and CV for six settings of rho and eta_g", ("table-1",)),
    "figure-1": Part("MSE(t) and CV(t) on six data sets", ("figure-1",)),
    "figure-2": Part("MSE and CV against the size of the network", ("figure-2",)),
    "theorems": Part(
        "both regrets against the square root of T, Lemma 3, assumption (a4)", ("theorems",)
    ),
    "claims": Part("every claim of the paper: the above, and what the text says", _SECTIONS[:5]),
    "beyond": Part(
        "simpler methods on the same data; River's models and LightGBM if installed", ("beyond",)
    ),
    "all": Part("everything above", _SECTIONS),
    "stations": Part(
        "not of the paper and not in all: a case study of stations, homes and car parks",
        _NODES,
        trials=2,
        quick_trials=2,
        halves=False,
    ),
}
