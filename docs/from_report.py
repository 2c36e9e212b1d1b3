"""Make docs/reproduce.md, its JSON and its pictures from a folder that `domkl reproduce` wrote.

python docs/from_report.py domkl-out/reproduce-001
"""

import json
import shutil
import sys
from pathlib import Path

from domkl.experiments.reproduce.page import as_markdown, figures_of

docs, folder = Path(__file__).parent, Path(sys.argv[1])
document = json.loads((folder / "results.json").read_text())
pictures = docs / "images" / "reproduce"
shutil.rmtree(pictures, ignore_errors=True)
pictures.mkdir(parents=True)
for figure in figures_of(document):
    shutil.copy(folder / "figures" / f"{figure['id']}.png", pictures)
text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
(docs / "reproduce.json").write_text(text + "\n")
(docs / "reproduce.md").write_text(as_markdown(document, "images/reproduce"))
