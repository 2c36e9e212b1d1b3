"""The threat model in SECURITY.md: every line names tests, and they exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODEL = (ROOT / "SECURITY.md").read_text().partition("## Threat model")[2].partition("\n## ")[0]
LINES = [line for line in MODEL.splitlines() if re.match(r"\| (?!\||held by)", line)]


def exists(path, name):
    """Whether a file has this test."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    file = ROOT / path
    body = ast.walk(ast.parse(file.read_text())) if file.is_file() else ()
    return any(isinstance(node, kinds) and node.name == name for node in body)


def test_every_line_names_tests_that_exist():
    missing = []
    for line in LINES:
        named = re.findall(r"`(tests/[\w/.]+)::(test_\w+)`", line.rpartition(" | ")[2])
        missing += [] if named or line.startswith("| **open**") else [line]
        missing += [f"{path}::{name}" for path, name in named if not exists(path, name)]
    assert missing == []


def test_every_attacker_has_lines():
    parts = MODEL.split("\n### ")[1:]
    assert len(parts) >= 9
    assert sum(part.count("\n| ") - 1 for part in parts) == len(LINES)
    assert all(part.count("\n| ") > 2 for part in parts)
