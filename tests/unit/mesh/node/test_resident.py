import subprocess
import sys

import pytest

from domkl.mesh.node.resident import mappings

SMAPS = """\
7f00-7f03 r-xp 00001000 08:01 42                         /usr/lib/one two.so
Size:                 12 kB
Rss:                   8 kB
Private_Clean:         8 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
8000-9000 r--p 00000000 08:01 42                         /usr/lib/relocated.so
Rss:                   4 kB
Anonymous:             4 kB
9000-a000 rw-p 00000000 08:01 42                         /usr/lib/data.so
Rss:                   4 kB
Anonymous:             0 kB
a000-b000 r--s 00000000 08:01 42                         /var/shared
Rss:                   4 kB
Anonymous:             0 kB
b000-c000 rw-p 00000000 00:00 0                          [heap]
Rss:                   4 kB
Anonymous:             0 kB
c000-d000 r--p 00000000 00:00 0
Rss:                   4 kB
Anonymous:             0 kB
"""


def test_only_unchanged_pages_of_files_are_given_back():
    found = list(mappings(SMAPS.splitlines()))
    assert [each.path for each in found if each.is_clean] == ["/usr/lib/one two.so"]
    assert found[0][:5] == (0x7F00, 3, "r-xp", "/usr/lib/one two.so", 8)
    assert [each.path for each in found[1:]] == [
        "/usr/lib/relocated.so", "/usr/lib/data.so", "/var/shared",
    ]  # fmt: skip


def run(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.slow
def test_libraries_work_after_their_pages_were_given_back():
    """The same numbers before and after, by code whose pages are gone in between."""
    before, between, same = run(
        "import numpy as np\n"
        "from domkl.mesh.node.resident import MAPS, mappings, release\n"
        "def resident():\n"
        "    return sum(m.resident for m in mappings(MAPS.open()) if m.is_clean)\n"
        "def numbers():\n"
        "    x = np.random.default_rng(1).standard_normal((30, 30))\n"
        "    return np.linalg.svd(x)[1].tobytes()\n"
        "first = numbers(); before = resident(); release(); between = resident()\n"
        "print(before, between, first == numbers())"
    )
    assert same == "True"
    assert int(between) < int(before) / 2


LEFT_OUT = (
    "import sys; from pathlib import Path; from domkl.mesh.node.resident import leave_out\n"
    "leave_out(Path(sys.argv[1]))\n"
    "try:\n    import scipy\n    print('there')\nexcept ModuleNotFoundError:\n    print('left out')"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[model]\nalgorithm = "domkrls"', "left out"),
        ('[model]\nalgorithm = "mine:Own"', "there"),
        ("", "left out"),
        ("model = 3", "left out"),
        ("[[[", "there"),
    ],
)
def test_scipy_is_left_out_unless_an_algorithm_of_the_users_may_need_it(tmp_path, text, expected):
    (tmp_path / "mesh.toml").write_text(text)
    assert " ".join(run(LEFT_OUT, tmp_path / "mesh.toml")) == expected


def test_a_missing_mesh_file_is_left_to_its_reader(tmp_path):
    assert run(LEFT_OUT, tmp_path / "mesh.toml") == ["there"]
