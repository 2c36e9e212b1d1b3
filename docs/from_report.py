"""Make pages of docs/ from a folder that `domkl reproduce` wrote.

python docs/from_report.py domkl-out/reproduce-001

A run of `all` becomes reproduce.md, one of `stations` stations.md, one of `beyond` the table of
which-learner.md and the section "Beyond the paper" of reproduce.md, one of `ablation` the tables of
what parts are worth in domkrls.md; each with its JSON, so that tests/test_docs.py can hold the page
to it.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from domkl.experiments.reproduce.document import as_markdown, figures_of, table_markdown

DOCS = Path(__file__).parent
EXPLANATION = DOCS / "explanation"
MARK = "<!-- from which-learner.json, by docs/from_report.py -->\n"
ABLATION = (
    "<!-- from ablation.json, by docs/from_report.py -->\n",
    "<!-- end of ablation.json -->\n",
)


def which_learner(document: dict[str, Any], page: str) -> str:
    """The page with the table of this run, and what it was run with."""
    table = document["sections"][0]["tables"][0]
    how = f"{_how(document)}."
    figure = document["sections"][0]["figures"][0]
    shown = f"![{figure['caption']}](../images/which-learner/{figure['id']}.png)"
    return f"{page[: page.index(MARK)]}{MARK}\n{table_markdown(table)}\n{how}\n\n{shown}\n"


def ablation(document: dict[str, Any], page: str) -> str:
    """The page of DOMKRLS with the text and the tables of this run between their marks."""
    first, last = ABLATION
    (section,) = document["sections"]
    made = f"Made by domkl {document['domkl']}, `{document['command']}`, {_how(document)}."
    told = [*section["text"], made]
    for table in section["tables"]:
        told += [table_markdown(table).strip(), *table["notes"]]
    inside = "\n\n".join(told)
    return f"{page[: page.index(first)]}{first}\n{inside}\n\n{page[page.index(last) :]}"


def _how(document: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {v}" for name, v in document["versions"].items())
    return f"{document['trials']} trials, seed {document['seed']}, {versions}"


def with_section(whole: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """A run of all parts with the section of a later run, which says how it was made."""
    (section,) = document["sections"]
    made = f"Made later than the rest, by domkl {document['domkl']}: `{document['command']}`,"
    later = {**section, "text": [f"{made} {_how(document)}.", *section["text"]]}
    sections = [later if each["id"] == later["id"] else each for each in whole["sections"]]
    seconds = {**whole["seconds"], **document["seconds"]}
    return {**whole, "sections": sections, "seconds": seconds}


def main(folder: Path) -> None:
    """Write the pages of a run."""
    document = json.loads((folder / "results.json").read_text())
    if document["part"] == "beyond":
        whole = json.loads((EXPLANATION / "reproduce.json").read_text())
        write(folder, with_section(whole, document), "reproduce")
    pages = {"all": "reproduce", "beyond": "which-learner"}
    write(folder, document, pages.get(document["part"], document["part"]))


def write(folder: Path, document: dict[str, Any], name: str) -> None:
    """Write JSON, pictures and page; pictures that the run did not make stay."""
    pictures = DOCS / "images" / name
    for figure in figures_of(document):
        pictures.mkdir(parents=True, exist_ok=True)
        source = folder / "figures" / f"{figure['id']}.png"
        if source.exists():
            shutil.copy(source, pictures)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    (EXPLANATION / f"{name}.json").write_text(text + "\n")
    path = EXPLANATION / f"{'domkrls' if name == 'ablation' else name}.md"
    within = {"which-learner": which_learner, "ablation": ablation}
    if name in within:
        path.write_text(within[name](document, path.read_text()))
    else:
        path.write_text(as_markdown(document, f"../images/{name}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
