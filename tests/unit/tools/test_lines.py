"""Lines of code: without blank lines, comments and docstrings; added, deleted or moved."""

import importlib.util
import subprocess
import sys
from pathlib import Path, PurePath

TOOL = Path(__file__).parents[3] / "tools" / "lines.py"
SPEC = importlib.util.spec_from_file_location("lines", TOOL)
lines = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lines)

SOURCE = '''"""A docstring
of two lines."""

import os  # counts

# does not


class One:
    """Does not."""

    value = """does,
    on both lines"""

    def two(self):
        """Does not."""
        return (
            os.sep
        )
'''


def test_blank_lines_comments_and_docstrings_do_not_count():
    assert lines.code_lines(SOURCE) == [
        "import os  # counts",
        "class One:",
        'value = """does,',
        'on both lines"""',
        "def two(self):",
        "return (",
        "os.sep",
        ")",
    ]


def test_an_empty_module_has_no_lines():
    assert lines.code_lines("") == lines.code_lines('"""Nothing else."""\n') == []


def test_a_line_that_moves_is_neither_added_nor_deleted():
    a, b = PurePath("a.py"), PurePath("b.py")
    before = {a: ["x = 1", "y = 2", "y = 2"], b: ["z = 3"]}
    now = {a: ["y = 2"], b: ["z = 4", "x = 1"]}
    assert lines.compared(before, now) == {"added": 1, "deleted": 2, "moved": 1}
    assert lines.compared(before, before) == {"added": 0, "deleted": 0, "moved": 0}


def printed(folder, *words):
    return subprocess.run(
        [sys.executable, str(TOOL), *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def git(folder, *words):
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


def test_it_prints_packages_or_files_and_compares_with_a_commit(tmp_path):
    package = tmp_path / "src" / "one" / "two"
    package.mkdir(parents=True)
    (package / "three.py").write_text(SOURCE)
    (package.parent / "four.py").write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "all")
    (package / "three.py").write_text("y = 1\n")
    (package / "five.py").write_text("import os  # counts\n")
    assert printed(tmp_path) == ["      2  one/two", "      1  one", *summed(3)]
    assert printed(tmp_path, "--files")[0].endswith(("three.py", "four.py", "five.py"))
    assert printed(tmp_path, "--since", "HEAD")[-2:] == [
        "      9  at HEAD",
        "1 added, 7 deleted, 1 moved",
    ]


def summed(n):
    return [f"      {n}  lines of code in 3 files of src"]
