"""List the licences of what domkl needs: python tools/licences.py [--write]

Follows the requirements of domkl and of its extras through the packages that are installed here, so
run it where all extras are. --write puts the list into docs/reference/licences.md.
"""

import argparse
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "licences.md"
#: extras of those who change domkl; what they need is not passed on
OURS = {"dev", "docs"}
MARK = "<!-- made by tools/licences.py; tests/test_docs.py compares -->\n"
ALWAYS = ("always",)
LONGEST = 60  # characters of a licence's name; longer ones are its text


def licence_of(found: Distribution) -> str:
    """The licence by its SPDX expression, else by its classifiers, else by its short name."""
    if expression := found.metadata.get("License-Expression"):
        return str(expression)
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in found.metadata.get_all("Classifier") or ()
        if each.startswith("License ::")
    ]
    classifiers = [each for each in classifiers if each != "OSI Approved"]
    if classifiers:
        return ", ".join(classifiers)
    words = (found.metadata.get("License") or "").strip().splitlines()
    return words[0] if words and len(words[0]) <= LONGEST else "not stated in its metadata"


def needed(extra: str | None) -> dict[str, Distribution]:
    """The packages that domkl, or one of its extras, needs, and those that they need."""
    found: dict[str, Distribution] = {}
    waiting = [("domkl", frozenset({extra or ""}))]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        try:
            made = distribution(name)
        except PackageNotFoundError:
            continue  # for another system or Python
        found[key(name)] = made
        for text in made.requires or ():
            wanted = Requirement(text)
            applies = wanted.marker is None or any(
                wanted.marker.evaluate({"extra": each}) for each in extras
            )
            item = (wanted.name, frozenset(wanted.extras | {""}))
            if applies and item not in seen:
                seen.add(item)
                waiting.append(item)
    del found["domkl"]
    return found


def key(name: str) -> str:
    """The name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def table() -> str:
    """A row for each package: its licence, and what needs it."""
    plain = needed(None)
    users: dict[str, list[str]] = {}
    every = dict(plain)
    extras = distribution("domkl").metadata.get_all("Provides-Extra") or ()
    for extra in sorted(set(extras) - OURS):
        for name, found in needed(extra).items():
            if name not in plain:
                users.setdefault(name, []).append(f"`{extra}`")
                every[name] = found
    rows = [
        f"| {found.metadata['Name']} | {licence_of(found)} | {', '.join(users.get(name, ALWAYS))} |"
        for name, found in sorted(every.items())
    ]
    return "\n".join(["| package | licence | needed by extra |", "|---|---|---|", *rows]) + "\n"


def page(text: str) -> str:
    """The page with the list as it is now."""
    return f"{text[: text.index(MARK)]}{MARK}\n{table()}"


def main() -> None:
    """Print the list, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text()))
    else:
        print(table(), end="")


if __name__ == "__main__":
    main()
