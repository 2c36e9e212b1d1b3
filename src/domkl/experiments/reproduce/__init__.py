"""The paper's table, figures and claims, reproduced.

Each module named after a section (`table_1`, `figure_1`, …) has two functions: ``runs(session)``
says what must be calculated, ``section(session)`` makes a section of the report from the results.
`session.py` holds what they share and runs them, `tasks.py` has the calculations, `paper.py` the
printed numbers, texts.toml titles and claims, and `document.py` the report, as data and as pages.
The case study of real nodes, and the ablation of DOMKRLS, are modules of the same form in the
folder studies/ of the repository.
"""

import sys
from pathlib import Path
from typing import NamedTuple

from domkl.errors import ParameterError


class Choice(NamedTuple):
    """What the user can ask for."""

    summary: str
    sections: tuple[str, ...]
    trials: int = 500  # unless the user says otherwise
    quick_trials: int = 4
    is_study: bool = False  # of the folder studies/, rather than of the paper


#: samples of a stream that a quick run takes, the first ones
QUICK_ROWS = 2000

_SECTIONS = ("table-1", "figure-1", "figure-2", "claims", "theorems", "beyond")

PARTS = {
    "table-1": Choice("MSE and CV for six settings of rho and eta_g", ("table-1",)),
    "figure-1": Choice("MSE(t) and CV(t) on six data sets", ("figure-1",)),
    "figure-2": Choice("MSE and CV against the size of the network", ("figure-2",)),
    "theorems": Choice(
        "both regrets against the square root of T, Lemma 3, assumption (a4)", ("theorems",)
    ),
    "claims": Choice("every claim of the paper: the above, and what the text says", _SECTIONS[:5]),
    "beyond": Choice(
        "simpler methods on the same data; River's models and LightGBM if installed", ("beyond",)
    ),
    "all": Choice("everything above", _SECTIONS),
    "stations": Choice(
        "not of the paper and not in all: a case study of stations, homes and car parks; needs a"
        " clone of the repository",
        ("stations", "newcomer", "day-ahead", "homes", "parking"),
        trials=2,
        quick_trials=2,
        is_study=True,
    ),
    "ablation": Choice(
        "not of the paper and not in all: what each part and constant of DOMKRLS is worth; needs a"
        " clone of the repository",
        ("ablation",),
        trials=20,
        quick_trials=2,
        is_study=True,
    ),
}


#: where the folder studies/ is, if this is a clone of the repository
CLONE = Path(__file__).parents[4]


def case_studies(part: str = "stations") -> str:
    """The package of the case studies, which can be imported afterwards."""
    if not (CLONE / "studies" / "stations.py").is_file():
        raise ParameterError(
            f"part {part} needs a clone of the repository, which has the folder studies/; the"
            " installed package has not"
        )
    if str(CLONE) not in sys.path:
        sys.path.append(str(CLONE))
    return "studies"
