"""A stored binary is never run for source that has changed, in the called file either."""

import importlib
import os
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest

import domkl.core.jit as jit
from domkl.core import numba_internals

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


def test_the_digest_sees_folders_in_folders(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text("1")
    first = jit.source_digest(tmp_path)
    (tmp_path / "inner" / "a.py").rename(tmp_path / "a.py")
    assert jit.source_digest(tmp_path) != first


def test_every_primitive_carries_the_stamp_of_all_compiled_folders():
    from domkl.algorithms import admm
    from domkl.core import hedge
    from domkl.sim import compiled

    package = Path(jit.__file__).parents[1]
    folders = ("core", "algorithms", "speech", "sim", "estimators")
    stamp = jit.source_digest(*(package / name for name in folders))
    for function in (hedge.hedge_weights, admm.local_step, compiled.play):
        assert function._cache._cache_file._source_stamp == stamp


def test_compiled_code_takes_a_form_without_an_entry():
    """The parts of a function are stored apart from what Python calls, and are no machine code."""

    @jit.sweep
    def twice(out):
        for i in range(out.size):
            out[i] *= 2

    @jit.sweep
    def thrice_twice(out):
        for _ in range(3):
            twice(out)

    values = np.ones(4)
    thrice_twice(values)
    np.testing.assert_array_equal(values, 8)
    assert twice.overloads == {}  # nothing that Python calls was compiled
    twice(values)
    np.testing.assert_array_equal(values, 16)
    assert len(twice.overloads) == 1


def test_no_compiled_function_stands_outside_of_the_digested_folders():
    package = Path(jit.__file__).parents[1]
    for path in package.rglob("*.py"):
        if "core.jit import" in path.read_text():
            names = path.read_text().split("core.jit import", 1)[1].split("\n", 1)[0]
            if {"row", "sweep", "scalar", "reduction"} & set(names.replace(",", " ").split()):
                assert path.relative_to(package).parts[0] in jit.COMPILED, path


def test_every_compiled_function_states_its_arithmetic():
    """Where it does not, Numba takes that of whichever caller compiles it first.

    The binary that is stored, and so the last digits of all later runs, would depend on what
    happened to be called first after an installation. Version 0.1 had this fault in its losses.
    """
    package = Path(jit.__file__).parents[1]
    for folder in jit.COMPILED:
        for path in sorted((package / folder).rglob("*.py")):
            home = ".".join(("domkl", *path.relative_to(package).with_suffix("").parts))
            module = importlib.import_module(home.removesuffix(".__init__"))
            for name, each in vars(module).items():
                options = getattr(each, "targetoptions", None)
                assert options is None or "fastmath" in options, f"{home}.{name}"


OWN = """
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
import domkl
from helper import RATE, scaled


class State(NamedTuple):
    theta: np.ndarray


class Message(NamedTuple):
    theta: np.ndarray


def predict(state, params, inputs, prediction):
    for k in range(len(state.theta)):
        prediction.y_hat[k] = scaled({})


def local_step(state, params, inputs, y, prediction, net, message):
    for k in range(len(y)):
        message.theta[k] = state.theta[k]


def merge(state, params, heard, net):
    for k in range(len(state.theta)):
        state.theta[k] = heard.theta[k]


@dataclass(frozen=True)
class Constant(domkl.CompiledAlgorithm):
    law = domkl.Law(State, Message, predict, local_step, merge, exchange={{"theta": "sum"}})

    def init(self, sizes):
        return State(np.zeros(sizes.theta))
"""
HELPER = "import numba\n\nRATE = {}\n\n@numba.njit\ndef scaled(a):\n    return {} * a * RATE\n"
USE = """
import numpy as np, domkl, own
from domkl.algorithms import base
from domkl.sim import compiled
base.PATIENCE = 0.0
X, y = np.ones((3, 2, 1)), np.ones((3, 2))
features = domkl.RandomFeatures(np.ones((1, 2, 1)))
run = domkl.simulate(own.Constant(), X, y, domkl.Graph.ring(2), features, cv="off")
print(run.predictions[0, 0], sum(compiled.play.stats.cache_hits.values()))
"""
#: a host as small as can be, which is quickly compiled
TINY = """
from domkl.algorithms.law import predict
from domkl.core.jit import sweep


@sweep
def play(state, params, inputs, prediction):
    predict(state, params, inputs, prediction)
"""
USE_TINY = """
import numpy as np, domkl, own, tiny
from domkl.algorithms.base import Inputs, Prediction
prediction = Prediction(np.zeros(2), np.zeros((2, 1)))
inputs = Inputs(np.ones((2, 1)), np.ones((2, 1, 2)), np.ones((2, 1)))
state = own.State(np.zeros((2, 1, 2)))
tiny.play(state, own.Constant().compiled, inputs, prediction)
print(prediction.y_hat[0], sum(tiny.play.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_a_users_law_is_stored_and_never_stale(tmp_path):
    """Stored once; compiled anew when its file, a function it calls or a constant there changes."""

    def predicted(script):
        # -B: bytecode of a file that was changed within its second is taken for that of before
        run = [sys.executable, "-B", "-c", script]
        out = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        return tuple(float(word) for word in out.split())

    (tmp_path / "tiny.py").write_text(TINY)
    mark = f"\n# {uuid.uuid4()}: a source that no earlier run of this test has stored\n"
    (tmp_path / "own.py").write_text(OWN.format("1.0") + mark)
    (tmp_path / "helper.py").write_text(HELPER.format("1.0", "2"))
    assert predicted(USE) == (2.0, 0)
    assert predicted(USE) == (2.0, 1)
    assert predicted(USE_TINY) == (2.0, 0)
    (tmp_path / "own.py").write_text(OWN.format("3.0") + mark)
    assert predicted(USE_TINY) == (6.0, 0)
    (tmp_path / "helper.py").write_text(HELPER.format("1.0", "5"))
    assert predicted(USE_TINY) == (15.0, 0)
    (tmp_path / "helper.py").write_text(HELPER.format("7.0", "5"))
    assert predicted(USE_TINY) == (105.0, 0)
    assert predicted(USE_TINY) == (105.0, 1)
    run = [sys.executable, "-c", SMALL_RUN]  # elsewhere, where the user's module is not found
    subprocess.run(run, check=True, capture_output=True)


USE_BOTH = """
import importlib, sys
import numpy as np, tiny
from domkl.algorithms.base import Inputs, Prediction
inputs = Inputs(np.ones((2, 1)), np.ones((2, 1, 2)), np.ones((2, 1)))
for name in sys.argv[1:]:
    own = importlib.import_module(name)
    prediction = Prediction(np.zeros(2), np.zeros((2, 1)))
    state = own.State(np.zeros((2, 1, 2)))
    tiny.play(state, own.Constant().compiled, inputs, prediction)
    print(prediction.y_hat[0])
"""


@pytest.mark.slow
def test_laws_whose_classes_have_the_same_names_are_told_apart(tmp_path):
    """Binaries that two processes stored meet in a third: version 0.2 ran one for the other."""

    def predicted(*names):
        run = [sys.executable, "-c", USE_BOTH, *names]
        out = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        return [float(word) for word in out.split()]

    (tmp_path / "tiny.py").write_text(TINY)
    (tmp_path / "helper.py").write_text(HELPER.format("1.0", "1"))
    for name, value in (("one", "1.0"), ("three", "3.0")):
        (tmp_path / f"{name}.py").write_text(OWN.format(value))
    assert [*predicted("one"), *predicted("three")] == [1.0, 3.0]
    assert predicted("one", "three") == [1.0, 3.0]
    assert predicted("three", "one") == [3.0, 1.0]


def test_an_index_that_cannot_be_read_counts_as_empty(tmp_path):
    index = numba_internals.TolerantIndex(str(tmp_path), "some", "stamp")
    (tmp_path / "some.nbi").write_bytes(b"no pickle at all")
    assert index.load("key") is None


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
    def no_folder(function, stamp, suffix):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba_internals, "StampedCache", no_folder)
    assert jit.scalar(lambda a: a + 1)(1) == 2
