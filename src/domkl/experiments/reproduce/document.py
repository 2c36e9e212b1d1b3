"""A report: sections of claims, tables and figures, and its pages in HTML and in Markdown.

A section can be turned into JSON. Pages and figures are made from this JSON alone, so that they can
be made again from a file, and contain no number that is not in it. The titles, texts and claims of
the paper's sections are in texts.toml.
"""

import base64
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from domkl.experiments.figures import Figure, Line, draw, plain, points
from domkl.experiments.store import Results
from domkl.typing import Floats

Verdict = Literal["holds", "does not hold", "cannot be checked here"]
Value = str | float | int | None

OURS = "not in the paper"  # the place of a claim that we have added
N_POINTS = 70  # number of points of a drawn curve
TAG = re.compile(r"<(?=[A-Za-z/!?])")  # where Markdown would take text for HTML
CODE = re.compile(r"`([^`]+)`")  # what a page shows as code
MARKS = {"holds": "✓", "does not hold": "✗", "cannot be checked here": "?"}
COUNTED = dict(zip(MARKS, ("hold", "do not", "cannot be checked"), strict=True))
QUICK = (
    "A quick run, with few trials, samples and models: verdicts marked (quick) may change in a"
    " full one"
)


@dataclass
class Claim:
    """A claim of the paper, and what we found."""

    id: str
    claim: str
    where: str  # in the paper
    evidence: str
    verdict: Verdict = "cannot be checked here"


@dataclass
class ReportTable:
    """A table with its caption and notes."""

    caption: str
    columns: list[str]
    rows: list[list[Value]]
    notes: list[str] = field(default_factory=list)


@dataclass
class Section:
    """A part of the report."""

    id: str
    title: str
    text: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    tables: list[ReportTable] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, **values: Any) -> "Section":
        """A section with its title and text from texts.toml."""
        told = texts()["sections"][name]
        return cls(name, told["title"], [each.format(**values) for each in told["text"]])

    def judge(
        self, claim_id: str, is_true: bool | None, names: Sequence[str] = (), **values: Any
    ) -> None:
        """Add a claim of texts.toml with its verdict; None if the results do not decide it.

        Where the claim is about data sets, ``names`` are those that are there.
        """
        told = texts()["claims"][claim_id]
        values["limit"] = told.get("limit")
        made = Claim(claim_id, told["claim"].format(**values), told["where"], "")
        if is_true is not None:
            made = judged(made, is_true, names, told.get("sets", ()))
        made.evidence = made.evidence or told["evidence"].format(**values)
        self.claims.append(made)

    def table(self, name: str, rows: Iterable[Sequence[Any]], **values: Any) -> None:
        """Add a table with its caption, columns and notes from texts.toml."""
        told = texts()["tables"][name]
        columns = [column.format(**values) for column in told["columns"]]
        caption, notes = told["caption"].format(**values), told.get("notes", [])
        self.tables.append(ReportTable(caption, columns, [[*row] for row in rows], list(notes)))

    def as_json(self) -> dict[str, Any]:
        """Plain values, rounded; numbers that are not finite become null."""
        rounded: dict[str, Any] = plain(asdict(self))
        return rounded


@cache
def texts() -> dict[str, Any]:
    """Titles, texts, claims and tables, as texts.toml has them."""
    path = files("domkl.experiments.reproduce") / "texts.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def limit(claim_id: str) -> float:
    """The limit that a claim of texts.toml states where the paper says "near" or "little"."""
    return float(texts()["claims"][claim_id]["limit"])


def verdict(is_true: bool) -> Verdict:
    """The verdict for a claim that could be checked."""
    return "holds" if is_true else "does not hold"


def judged(claim: Claim, is_true: bool, names: Sequence[str], wanted: Sequence[str]) -> Claim:
    """Decide a claim about the ``wanted`` data sets by those that are there.

    One counterexample is enough to refute a claim; confirming it takes all data sets.
    """
    absent = [name for name in wanted if name not in names]
    if absent and (is_true or not names):
        return unchecked(claim.id, claim.claim, claim.where, absent)
    return replace(claim, verdict=verdict(is_true))


def unchecked(claim_id: str, claim: str, where: str, missing: Iterable[str]) -> Claim:
    """A claim that cannot be checked because data sets are missing."""
    names = ", ".join(missing)
    why = f"data sets not found: {names}; `domkl data fetch` them, or set DOMKL_DATA"
    return Claim(claim_id, claim, where, why)


def line(name: str, curve: Floats) -> Line:
    """A curve (3, T) of means and bands over rounds, thinned to `N_POINTS` points."""
    n_rounds = curve.shape[1]
    rounds = np.unique(np.geomspace(1, n_rounds, N_POINTS).round().astype(int))
    return points(name, rounds.tolist(), curve[:, rounds - 1].T)


def last(results: Results, curve: str = "mse", *, paper_start: bool = False) -> Floats:
    """The final value of every trial, if asked for with the paper's MSE(1) = CV(1) = 1."""
    values: Floats = results[f"{curve}_last"]
    if paper_start:
        values = values + (1 - results[f"{curve}_first"]) / results[curve].shape[1]
    return values


def mean_of(results: Results, curve: str = "mse", *, paper_start: bool = False) -> float:
    """Mean over trials of the final value."""
    return float(np.mean(last(results, curve, paper_start=paper_start)))


def percent(results: Results, curve: str = "mse", *, paper_start: bool = False) -> float:
    """Mean over trials of the final value, times 100."""
    return 100 * mean_of(results, curve, paper_start=paper_start)


def numbers(values: Iterable[float], between: str = " / ") -> str:
    """Numbers with three significant digits, as text."""
    return between.join(f"{value:.3g}" for value in values)


def joined(names: Iterable[str]) -> str:
    """``a, b and c``."""
    names = list(names)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def listed(values: Mapping[str, float]) -> str:
    """Names with their numbers, as text."""
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


# --- pages, from the JSON of a run


def head_of(document: dict[str, Any]) -> dict[str, Any]:
    """What a run's page says before its sections, and its name in docs/."""
    part = document.get("part")
    page = part if part in texts()["pages"] else "reproduce"
    head: dict[str, Any] = {"page": page, **texts()["pages"][page]}
    return head


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
    if not every:
        return "No claim here"
    theirs = [claim for claim in every if claim["where"] != OURS]
    found = [claim["verdict"] for claim in theirs or every]
    counts = ", ".join(f"{found.count(v)} {words}" for v, words in COUNTED.items() if v in found)
    text = f"Of {len(found)} claims{' of the paper' if theirs else ''}: {counts}"
    if len(every) > len(found):
        text += f"; {len(every) - len(found)} more are ours"
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
    from markupsafe import Markup, escape

    def coded(text: str) -> Markup:
        return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))

    def inert(value: Any) -> Any:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return Markup(TAG.sub("&lt;", value))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=inert if name.endswith(".md.jinja") else None,
    )  # fmt: skip
    environment.filters.update(number=number, coded=coded)
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
