"""A report as one HTML page or one Markdown page, from its JSON alone."""

import base64
import math
import re
from importlib.resources import files
from typing import Any

from domkl.experiments.figures import draw
from domkl.experiments.reproduce.document import OURS, texts

TAG = re.compile(r"<(?=[A-Za-z/!?])")  # where Markdown would take text for HTML
MARKS = {"holds": "✓", "does not hold": "✗", "cannot be checked here": "?"}


def head_of(document: dict[str, Any]) -> dict[str, Any]:
    """What a run's page says before its sections, and its name in docs/."""
    page = "stations" if document.get("part") == "stations" else "reproduce"
    head: dict[str, Any] = {"page": page, **texts()["pages"][page]}
    return head


QUICK = (
    "A quick run, with few trials, samples and models: verdicts marked (quick) may change in a"
    " full one"
)


def as_html(document: dict[str, Any], pictures: dict[str, bytes] | None = None) -> str:
    """One self-contained page with the figures in it; nothing is loaded from elsewhere."""
    drawn = pictures or {figure["id"]: draw(figure, "svg") for figure in figures_of(document)}
    encoded = {name: base64.b64encode(svg).decode() for name, svg in drawn.items()}
    return _render("report.html.jinja", document=document, pictures=encoded)


def as_markdown(document: dict[str, Any], folder: str) -> str:
    """A page that refers to PNG figures in a folder."""
    return _render("report.md.jinja", document=document, folder=folder)


def table_markdown(table: dict[str, Any]) -> str:
    """One table as Markdown."""
    return _render("table.md.jinja", table=table)


def figures_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All figures of all sections."""
    return [figure for section in document["sections"] for figure in section["figures"]]


def claims_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All claims of all sections."""
    return [claim for section in document["sections"] for claim in section["claims"]]


def failed(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Claims of the paper that do not hold."""
    claims = (claim for claim in claims_of(document) if claim["where"] != OURS)
    return [claim for claim in claims if claim["verdict"] == "does not hold"]


def tally(document: dict[str, Any]) -> str:
    """The number of the paper's claims with each verdict, as text; of ours, if it has none."""
    every = claims_of(document)
    found = [claim["verdict"] for claim in every if claim["where"] != OURS]
    whose = " of the paper"
    if not found:
        found, whose = [claim["verdict"] for claim in every], ""
    words = {
        "holds": "hold",
        "does not hold": "do not",
        "cannot be checked here": "cannot be checked",
    }
    counts = ", ".join(f"{found.count(v)} {words[v]}" for v in MARKS if v in found)
    if not found:
        return "No claim here"
    text = f"Of {len(found)} claims{whose}: {counts}"
    n_ours = len(every) - len(found)
    if n_ours:
        text += f"; {n_ours} more are ours"
    return text + (f". {QUICK}" if document.get("is_quick") else "")


def verdict_of(document: dict[str, Any], claim: dict[str, Any]) -> str:
    """A verdict, marked where the run was a quick one."""
    is_checked = claim["verdict"] != "cannot be checked here"
    is_marked = is_checked and document.get("is_quick", False)
    return f"{claim['verdict']} (quick)" if is_marked else str(claim["verdict"])


def number(value: Any) -> str:
    """A cell as text: a number with three significant digits."""
    if value is None:
        return "-"
    if isinstance(value, (str, int)):
        return str(value)
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    if power < -4 or power > 4:
        return f"{value:.2e}"
    return f"{value:.{max(2 - power, 0)}f}"


def _render(name: str, **values: Any) -> str:
    """Fill a template; whatever comes from data is escaped, in Markdown where a tag begins."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def inert(value: Any) -> Any:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return Markup(TAG.sub("&lt;", value))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=inert if name.endswith(".md.jinja") else None,
    )  # fmt: skip
    environment.filters["number"] = number
    environment.globals.update(
        marks=MARKS,
        head_of=head_of,
        claims_of=claims_of,
        tally=tally,
        verdict_of=verdict_of,
        table_of=lambda table: Markup(table_markdown(table)),  # escaped already
    )
    template = files("domkl.experiments.reproduce") / "templates" / name
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)
