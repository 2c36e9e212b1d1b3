"""Prepare the commit of a version: python tools/release.py VERSION [--dry-run]

Writes the version to src/domkl/__init__.py, CITATION.cff and the wheel's name in
docs/howto/ten-devices.md, turns the section "Unreleased" of the changelog into that of the version,
writes the list of parts and the lock file (tools/parts.py, tools/lock.py), and commits. Nothing is
pushed, and no tag is set: a maintainer does that, once the commit has been looked at. With
--dry-run it says what it would do, and changes nothing.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULE, CITATION, CHANGELOG = "src/domkl/__init__.py", "CITATION.cff", "CHANGELOG.md"
DEVICES = "docs/howto/ten-devices.md"
FILES = (MODULE, CITATION, CHANGELOG, DEVICES)
PARTS, LOCK = "parts.cdx.json", "requirements.lock"
UNRELEASED = "## [Unreleased]\n"
VERSION = re.compile(r"\d+\.\d+\.\d+")


class ReleaseError(Exception):
    """A reason why there can be no release."""


def current(texts: dict[str, str]) -> str:
    """The version that the module has now."""
    found = re.search(r'^__version__ = "([^"]+)"$', texts[MODULE], re.M)
    if found is None:
        raise ReleaseError(f"{MODULE} must have a line __version__, and has none")
    return found[1]


def released(texts: dict[str, str], version: str, day: date) -> dict[str, str]:
    """The files of the tree as they are to be after the release."""
    before = current(texts)
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"version must have the form 1.2.3, got {version!r}")
    if _numbers(version) <= _numbers(before):
        raise ReleaseError(f"version must be above {before}, got {version}")
    if f"version: {before}\n" not in texts[CITATION]:
        raise ReleaseError(f"{CITATION} must have version {before}, as {MODULE}; mend it first")
    wheel = "domkl-{}-py3-none-any.whl"
    if wheel.format(before) not in texts[DEVICES]:
        raise ReleaseError(f"{DEVICES} must name {wheel.format(before)}; mend it first")
    _, mark, rest = texts[CHANGELOG].partition(UNRELEASED)
    if not mark or not re.search(r"^- ", rest.split("\n## ")[0], re.M):
        raise ReleaseError(f"{CHANGELOG} must have entries under Unreleased, and has none")
    citation = texts[CITATION].replace(f"version: {before}\n", f"version: {version}\n")
    citation = re.sub(r"^date-released: .*$", f"date-released: {day}", citation, flags=re.M)
    heading = f"{UNRELEASED}\n## [{version}] - {day}\n"
    return {
        MODULE: texts[MODULE].replace(f'__version__ = "{before}"', f'__version__ = "{version}"'),
        CITATION: citation,
        CHANGELOG: texts[CHANGELOG].replace(UNRELEASED, heading, 1),
        DEVICES: texts[DEVICES].replace(wheel.format(before), wheel.format(version)),
    }


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def check_tree(root: Path, version: str) -> None:
    """Refuse a tree with changes of its own, and a tag that exists."""
    changed = _git(root, "status", "--porcelain")
    if changed:
        raise ReleaseError(f"the tree must have no changes, got {changed.splitlines()[0].strip()}")
    if _git(root, "tag", "--list", f"v{version}"):
        raise ReleaseError(f"the tag v{version} must be new, and exists")


def write_lists(root: Path, version: str) -> None:
    """Write the list of parts and the lock file."""
    for words in (("tools/lock.py",), ("tools/parts.py", version)):
        subprocess.run([sys.executable, *words], cwd=root, check=True)


def main(
    words: list[str] | None = None,
    root: Path = ROOT,
    write: Callable[[Path, str], None] = write_lists,
) -> int:
    """Prepare the commit, or say what it would be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="change nothing")
    parser.add_argument(
        "--date", type=date.fromisoformat, default=datetime.now(UTC).date(), help="default: today"
    )
    args = parser.parse_args(words)
    try:
        texts = {name: (root / name).read_text() for name in FILES}
        made = released(texts, args.version, args.date)
        check_tree(root, args.version)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    files = [*made, PARTS, LOCK]
    print(f"{current(texts)} -> {args.version}, {args.date}: {', '.join(files)}")
    if args.dry_run:
        return 0
    for name, text in made.items():
        (root / name).write_text(text)
    try:
        write(root, args.version)
    except (OSError, subprocess.CalledProcessError) as error:
        for name, text in texts.items():
            (root / name).write_text(text)
        print(f"release: {error}; nothing is committed", file=sys.stderr)
        return 2
    _git(root, "add", "--", *files)
    _git(root, "commit", "--quiet", "-m", f"release: {args.version}", "--", *files)
    print(
        "committed; look at it, run what CONTRIBUTING.md lists, and then set the tag:\n"
        f"  git tag -a v{args.version} -m 'domkl {args.version}'"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
