"""Write parts.cdx.json, the list of parts of domkl (CycloneDX 1.6): python tools/parts.py VERSION

Parts are the packages that domkl and its extras need, as they are installed here, with licences and
with what each of them needs; run it where all extras are. What only developers need is left out.
"""

import json
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement

sys.path.insert(0, str(Path(__file__).parent))
import licences

ROOT = Path(__file__).parent.parent
PARTS = "parts.cdx.json"


def components() -> dict[str, Distribution]:
    """The packages, by their normal names."""
    extras = distribution("domkl").metadata.get_all("Provides-Extra") or ()
    found = licences.needed(None)
    for extra in sorted(set(extras) - licences.OURS):
        found |= licences.needed(extra)
    return dict(sorted(found.items()))


def address(name: str, version: str) -> str:
    """The package URL, which names a part everywhere."""
    return f"pkg:pypi/{name}@{version}"


def licence_of(found: Distribution) -> dict[str, Any]:
    """The licence as CycloneDX has it: an SPDX expression, or a name."""
    text = licences.licence_of(found)
    is_expression = found.metadata.get("License-Expression") == text
    return {"expression": text} if is_expression else {"license": {"name": text}}


def document(version: str) -> dict[str, Any]:
    """The list of parts of this version of domkl."""
    parts = components()
    where = {name: address(name, found.version) for name, found in parts.items()}
    own = address("domkl", version)
    needs = {own: _direct(distribution("domkl"), where, with_extras=True)}
    for name, found in parts.items():
        needs[where[name]] = _direct(found, where)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, own)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library", "bom-ref": own, "name": "domkl", "version": version, "purl": own,
                "licenses": [{"expression": "BSD-3-Clause"}],
            }
        },
        "components": [
            {
                "type": "library", "bom-ref": where[name], "name": found.metadata["Name"],
                "version": found.version, "purl": where[name], "licenses": [licence_of(found)],
            }
            for name, found in parts.items()
        ],
        "dependencies": [{"ref": ref, "dependsOn": below} for ref, below in needs.items()],
    }  # fmt: skip


def _direct(found: Distribution, known: dict[str, str], *, with_extras: bool = False) -> list[str]:
    """The parts that a package names itself."""
    wanted = [Requirement(text) for text in found.requires or ()]
    names = {
        licences.key(each.name)
        for each in wanted
        if with_extras or each.marker is None or each.marker.evaluate({"extra": ""})
    }
    return sorted(known[name] for name in names & known.keys())


def main(words: list[str], root: Path = ROOT) -> int:
    """Write the file."""
    (version,) = words
    made = document(version)
    (root / PARTS).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    print(f"{PARTS}: {len(made['components'])} parts of domkl {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
