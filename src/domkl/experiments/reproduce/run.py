"""Run a part of the reproduction: do its tasks, make the document, write its files."""

import platform
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import domkl
from domkl.errors import DataError
from domkl.experiments.figures import draw
from domkl.experiments.reproduce import (
    PARTS,
    beyond,
    claims,
    day_ahead,
    figure_1,
    figure_2,
    homes,
    newcomer,
    parking,
    stations,
    table_1,
    theorems,
)
from domkl.experiments.reproduce.document import plain
from domkl.experiments.reproduce.page import as_html, figures_of
from domkl.experiments.reproduce.session import Progress, Session
from domkl.experiments.reproduce.tasks.base import Task
from domkl.experiments.rivals import installed
from domkl.experiments.store import LIBRARIES

SECTIONS: dict[str, ModuleType] = {
    "table-1": table_1,
    "figure-1": figure_1,
    "figure-2": figure_2,
    "claims": claims,
    "theorems": theorems,
    "beyond": beyond,
    "stations": stations,
    "newcomer": newcomer,
    "day-ahead": day_ahead,
    "homes": homes,
    "parking": parking,
}
#: data sets without which a part cannot be done; the other parts have data sets that ship
NEEDED = {"table-1": table_1.SETS, "figure-2": (figure_2.DATA,)}


def reproduce(session: Session, part: str, command: str, progress: Progress) -> dict[str, Any]:
    """Do a part of the reproduction and return its document, ready for JSON."""
    _check_data(session, part)
    tasks: dict[str, list[Task]] = {
        name: SECTIONS[name].tasks(session) for name in PARTS[part].sections
    }
    session.do([task for group in tasks.values() for task in group], progress)
    made = [SECTIONS[name].section(session) for name in tasks]
    return {
        "domkl": domkl.__version__,
        "command": command,
        "part": part,
        "seed": session.setting.seed,
        "trials": session.setting.n_trials,
        "is_quick": session.is_quick,
        "dtype": session.setting.dtype,
        "cores": session.n_cores,
        "seconds": {name: plain(_seconds(session, group)) for name, group in tasks.items()},
        "versions": _versions(),
        "data": _data(session),
        "missing": session.missing,
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


def _seconds(session: Session, tasks: list[Task]) -> float:
    """Time that a section's tasks took when they were done; shared tasks count for each section."""
    return sum(
        float(session[task]["seconds"]) for task in {task.key: task for task in tasks}.values()
    )


def _check_data(session: Session, part: str) -> None:
    """Raise an error at once if none of the data sets that a part needs is there."""
    needed = NEEDED.get(part, ())
    if needed and not session.available(needed):
        raise DataError("; ".join(session.missing[name] for name in needed))


def _versions() -> dict[str, str]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    found |= {name: version(name) for name in LIBRARIES}
    found |= {name: installed(name) for name in ("river", "lightgbm")}
    return {name: each for name, each in found.items() if each is not None}


def _data(session: Session) -> list[dict[str, Any]]:
    keys = ("rows", "rows_of_paper", "note", "sha256")
    return [
        {"name": name, **{key: facts[key] for key in keys}} for name, facts in session.used.items()
    ]
