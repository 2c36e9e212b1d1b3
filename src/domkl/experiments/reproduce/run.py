"""Run a part of the reproduction: do its tasks, make the document, write its files."""

import platform
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import domkl
from domkl.errors import DataError
from domkl.experiments.compare import Progress
from domkl.experiments.figures import draw, plain
from domkl.experiments.reproduce import PARTS, case_studies
from domkl.experiments.reproduce.page import as_html, figures_of
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.rivals import installed
from domkl.experiments.store import LIBRARIES


def modules_of(part: str) -> dict[str, ModuleType]:
    """The module of each section: ``runs(session)`` has its tasks, ``section(session)`` makes it.

    The module may name data sets without any of which the part cannot be done, as ``NEEDED``.
    """
    package = case_studies() if PARTS[part].is_study else "domkl.experiments.reproduce"
    names = PARTS[part].sections
    return {name: import_module(f"{package}.{name.replace('-', '_')}") for name in names}


def reproduce(session: Session, part: str, command: str, progress: Progress) -> dict[str, Any]:
    """Do a part of the reproduction and return its document, ready for JSON."""
    modules = modules_of(part)
    if len(modules) == 1:
        (needed,) = (getattr(module, "NEEDED", ()) for module in modules.values())
        if needed and not session.available(needed):
            raise DataError("; ".join(session.missing[name] for name in needed))
    runs = {name: module.runs(session) for name, module in modules.items()}
    session.do([task for group in runs.values() for task in group.values()], progress)
    made = [module.section(session) for module in modules.values()]
    return {
        "domkl": domkl.__version__,
        "command": command,
        "part": part,
        "seed": session.setting.seed,
        "trials": session.setting.n_trials,
        "is_quick": session.is_quick,
        "dtype": session.setting.dtype,
        "cores": session.n_cores,
        "seconds": {name: plain(_seconds(session, group)) for name, group in runs.items()},
        "versions": _versions(),
        "data": [_facts(name, facts) for name, facts in session.used.items()],
        "missing": session.missing,
        "sections": [section.as_json() for section in made],
    }


def write(document: dict[str, Any], text: str, folder: Path) -> None:
    """Make a folder with results.json, report.html, and every figure as SVG and PNG."""
    pictures = folder / "figures"
    pictures.mkdir(parents=True)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    drawn = {}
    for figure in figures_of(document):
        drawn[figure["id"]] = draw(figure, "svg")
        (pictures / f"{figure['id']}.svg").write_bytes(drawn[figure["id"]])
        (pictures / f"{figure['id']}.png").write_bytes(draw(figure, "png"))
    (folder / "report.html").write_text(as_html(document, drawn), encoding="utf-8")


def _seconds(session: Session, runs: Runs) -> float:
    """Time that a section's tasks took when they were done; shared tasks count for each section."""
    tasks = {task.key: task for task in runs.values()}
    return sum(float(session[task]["seconds"]) for task in tasks.values())


def _versions() -> dict[str, str]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    found |= {name: version(name) for name in LIBRARIES}
    found |= {name: installed(name) for name in ("river", "lightgbm")}
    return {name: each for name, each in found.items() if each is not None}


def _facts(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("rows", "rows_of_paper", "note", "sha256")
    return {"name": name} | {key: facts[key] for key in keys}
