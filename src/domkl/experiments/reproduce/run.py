"""The whole reproduction: do the work, write the document, draw it."""

import platform
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import domkl
from domkl.errors import DataError
from domkl.experiments.reproduce import beyond, claims, figure_1, figure_2, table_1, theorems
from domkl.experiments.reproduce.document import plain
from domkl.experiments.reproduce.figures import draw
from domkl.experiments.reproduce.lab import Lab, Progress
from domkl.experiments.reproduce.page import as_html, figures_of
from domkl.experiments.reproduce.works import river
from domkl.experiments.reproduce.works.base import Work

SECTIONS: dict[str, ModuleType] = {
    "table-1": table_1,
    "figure-1": figure_1,
    "figure-2": figure_2,
    "claims": claims,
    "theorems": theorems,
    "beyond": beyond,
}
#: what may be asked for → its sections
PARTS: dict[str, tuple[str, ...]] = {
    "table-1": ("table-1",),
    "figure-1": ("figure-1",),
    "figure-2": ("figure-2",),
    "claims": ("table-1", "figure-1", "figure-2", "claims", "theorems"),
    "theorems": ("theorems",),
    "beyond": ("beyond",),
    "all": tuple(SECTIONS),
}
NEEDED = {"table-1": table_1.SETS, "figure-2": (figure_2.DATA,)}  # the others have shipped sets


def reproduce(lab: Lab, part: str, command: str, progress: Progress) -> dict[str, Any]:
    """Do a part of the reproduction; give the document, ready for JSON."""
    _check_data(lab, part)
    works: dict[str, list[Work]] = {name: SECTIONS[name].works(lab) for name in PARTS[part]}
    lab.do([work for group in works.values() for work in group], progress)
    made = [SECTIONS[name].section(lab) for name in works]
    return {
        "domkl": domkl.__version__,
        "command": command,
        "part": part,
        "seed": lab.setting.seed,
        "trials": lab.setting.n_trials,
        "dtype": lab.setting.dtype,
        "cores": lab.n_cores,
        "seconds": {name: plain(_seconds(lab, group)) for name, group in works.items()},
        "versions": _versions(),
        "data": _data(lab),
        "missing": lab.missing,
        "sections": [section.as_json() for section in made],
    }


def write(document: dict[str, Any], folder: Path) -> None:
    """Write report.html, and every figure as SVG and PNG."""
    pictures = folder / "figures"
    pictures.mkdir()
    drawn = {}
    for figure in figures_of(document):
        drawn[figure["id"]] = draw(figure, "svg")
        (pictures / f"{figure['id']}.svg").write_bytes(drawn[figure["id"]])
        (pictures / f"{figure['id']}.png").write_bytes(draw(figure, "png"))
    (folder / "report.html").write_text(as_html(document, drawn), encoding="utf-8")


def _seconds(lab: Lab, works: list[Work]) -> float:
    """How long a section's work took when it was done, shared pieces counted for each."""
    return sum(float(lab[work]["seconds"]) for work in {work.key: work for work in works}.values())


def _check_data(lab: Lab, part: str) -> None:
    """Where nothing that a part needs is there, say so at once."""
    needed = NEEDED.get(part, ())
    if needed and not lab.available(needed):
        raise DataError("; ".join(lab.missing[name] for name in needed))


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    found |= {name: version(name) for name in ("numpy", "scipy", "numba")}
    return found | ({"river": version("river")} if river.is_installed() else {})


def _data(lab: Lab) -> list[dict[str, Any]]:
    keys = ("rows", "rows_of_paper", "note", "sha256")
    return [
        {"name": name, **{key: lab.stream(name).facts[key] for key in keys}} for name in lab.used
    ]
