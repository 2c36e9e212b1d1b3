"""Count the lines of code of a folder: without blank lines, comments and docstrings.

    python tools/lines.py               # src, by package
    python tools/lines.py --files       # every file, longest first
    python tools/lines.py --since REV   # what was added, deleted and moved since a commit

A line that disappears in one place and appears in another has moved.
"""

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path, PurePath

#: tokens that make no line a line of code
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> list[str]:
    """The lines of code of a module, stripped."""
    silent = _docstring_lines(source)
    told: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            told.update(range(token.start[0], token.end[0] + 1))
    lines = source.splitlines()
    return [lines[n - 1].strip() for n in sorted(told - silent) if lines[n - 1].strip()]


def _docstring_lines(source: str) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return found


def of_folder(folder: Path) -> dict[PurePath, list[str]]:
    """The lines of code of every Python file below a folder."""
    paths = sorted(folder.rglob("*.py"))
    return {path.relative_to(folder): code_lines(path.read_text("utf-8")) for path in paths}


def of_commit(revision: str, folder: str) -> dict[PurePath, list[str]]:
    """The same of a folder as it was committed."""
    names = _git("ls-tree", "-r", "--name-only", revision, folder).splitlines()
    return {
        PurePath(name).relative_to(folder): code_lines(_git("show", f"{revision}:{name}"))
        for name in names
        if name.endswith(".py")
    }


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], check=True, capture_output=True, encoding="utf-8")
    return done.stdout


def compared(before: dict[PurePath, list[str]], now: dict[PurePath, list[str]]) -> dict[str, int]:
    """Lines added, deleted and moved between files, by what they say.

    A line that is gone from one file and new in another is moved; the order is not looked at.
    """
    added: Counter[str] = Counter()
    deleted: Counter[str] = Counter()
    for path in before.keys() | now.keys():
        old, new = Counter(before.get(path, ())), Counter(now.get(path, ()))
        added += new - old
        deleted += old - new
    moved = added & deleted
    return {
        "added": (added - moved).total(),
        "deleted": (deleted - moved).total(),
        "moved": moved.total(),
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default="src")
    parser.add_argument("--files", action="store_true", help="list every file, longest first")
    parser.add_argument("--since", metavar="REV", help="compare with this commit")
    args = parser.parse_args()
    now = of_folder(Path(args.folder))
    rows: Counter[str] = Counter()
    for path, lines in now.items():
        rows[str(path if args.files else PurePath(*path.parts[:-1][:3]))] += len(lines)
    for name, count in rows.most_common():
        print(f"{count:7,}  {name}")
    print(f"{rows.total():7,}  lines of code in {len(now)} files of {args.folder}")
    if args.since:
        before = of_commit(args.since, args.folder)
        print(f"{sum(map(len, before.values())):7,}  at {args.since}")
        print(", ".join(f"{n:,} {what}" for what, n in compared(before, now).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
