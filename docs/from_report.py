"""Make pages of docs/ from a folder that `domkl reproduce` wrote.

python docs/from_report.py domkl-out/reproduce-001

A run of `all` becomes reproduce.md, one of `beyond` the table of which-learner.md; each with its
JSON, so that tests/test_docs.py can hold the page to it.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from domkl.experiments.reproduce.page import as_markdown, figures_of, table_markdown

DOCS = Path(__file__).parent
MARK = "<!-- from which-learner.json, by docs/from_report.py -->\n"


def which_learner(document: dict[str, Any], page: str) -> str:
    """The page with the table of this run, and what it was run with."""
    table = document["sections"][0]["tables"][0]
    versions = ", ".join(f"{name} {v}" for name, v in document["versions"].items())
    how = f"{document['trials']} trials, seed {document['seed']}, {versions}."
    figure = document["sections"][0]["figures"][0]
    shown = f"![{figure['caption']}](images/which-learner/{figure['id']}.png)"
    return f"{page[: page.index(MARK)]}{MARK}\n{table_markdown(table)}\n{how}\n\n{shown}\n"


def main(folder: Path) -> None:
    """Write JSON, pictures and page."""
    document = json.loads((folder / "results.json").read_text())
    name = {"all": "reproduce", "beyond": "which-learner"}[document["part"]]
    pictures = DOCS / "images" / name
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    for figure in figures_of(document):
        shutil.copy(folder / "figures" / f"{figure['id']}.png", pictures)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    (DOCS / f"{name}.json").write_text(text + "\n")
    path = DOCS / f"{name}.md"
    if name == "reproduce":
        path.write_text(as_markdown(document, f"images/{name}"))
    else:
        path.write_text(which_learner(document, path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
