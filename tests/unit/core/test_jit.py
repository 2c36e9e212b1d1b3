"""A stored binary is never run for source that has changed, in the called file either."""

import os
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


SMALL_RUN = """
import numpy as np, domkl
X, y = np.ones((3, 2, 1)), np.ones((3, 2))
features = domkl.RandomFeatures(np.ones((1, 2, 1)))
print(domkl.simulate(domkl.DOMKL(), X, y, domkl.Graph.ring(2), features).mse[-1])
"""


@pytest.mark.slow
def test_it_runs_without_the_compiler_too():
    """NUMBA_DISABLE_JIT is how one steps through the laws with a debugger."""
    values = [
        float(
            subprocess.run(
                [sys.executable, "-c", SMALL_RUN],
                env=os.environ | {"NUMBA_DISABLE_JIT": flag},
                check=True,
                capture_output=True,
            ).stdout
        )
        for flag in ("0", "1")
    ]
    assert values[0] == pytest.approx(values[1])


def test_where_nothing_can_be_stored_functions_are_compiled_anew(monkeypatch):
    def no_folder(function):
        raise RuntimeError("cannot cache function: no locator available")

    def njit(cache=False, **options):
        return no_folder if cache else lambda function: ("compiled", function)

    monkeypatch.setattr(jit.numba, "njit", njit)
    assert jit.row(len) == ("compiled", len)
