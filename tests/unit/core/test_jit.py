"""A stored binary is never run for source that has changed, in the called file either."""

import subprocess
import sys
from pathlib import Path

import pytest

import domkl.core.jit as jit

INNER = "import numba\n\n@numba.njit(cache=True)\ndef inner(a):\n    return a + {}\n"
OUTER = (
    "from pathlib import Path\n"
    "import numba\n"
    "from domkl.core.jit import source_digest, stamp_cache\n"
    "from cached.inner import inner\n\n"
    "@numba.njit(cache=True)\n"
    "def outer(a):\n"
    "    return inner(a)\n\n"
    "if {stamped}:\n"
    "    stamp_cache(outer, source_digest(Path(__file__).parent))\n"
)


def call(folder):
    code = "from cached.outer import outer; print(outer(1))"
    run = [sys.executable, "-c", code]
    return int(subprocess.run(run, cwd=folder, check=True, capture_output=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("stamped", "after"), [(True, 101), (False, 11)])
def test_a_changed_callee_in_another_file(tmp_path, stamped, after):
    """Without the stamp, Numba runs the old code: should that change, the stamp can go."""
    package = tmp_path / "cached"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text(INNER.format(10))
    (package / "outer.py").write_text(OUTER.format(stamped=stamped))
    assert call(tmp_path) == 11
    (package / "inner.py").write_text(INNER.format(100))
    assert call(tmp_path) == after


def test_the_digest_sees_names_and_contents(tmp_path):
    (tmp_path / "a.py").write_text("1")
    first = jit.source_digest(tmp_path)
    (tmp_path / "a.py").write_text("2")
    second = jit.source_digest(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({first, second, jit.source_digest(tmp_path)}) == 3


def test_every_primitive_carries_the_stamp():
    from domkl.core import admm, laws, rounds

    stamp = jit.source_digest(Path(jit.__file__).parent)
    for function in (admm.primal_step, laws.consensus_local, rounds.play):
        assert function._cache._cache_file._source_stamp == stamp
