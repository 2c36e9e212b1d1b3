"""One network over real ranks: what one process gives, and what happens when a rank dies."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import domkl

SCRIPT = Path(__file__).with_name("mpi_ranks.py")
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
WAIT = 600  # seconds, for all ranks to end, should they have to compile

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
        reason="needs mpi4py and mpiexec: pip install 'domkl[mpi]'",
    ),
]


def run_ranks(n_ranks, case, folder):
    command = [MPIEXEC, "-n", str(n_ranks), sys.executable, str(SCRIPT), case, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)


def load_case():
    spec = importlib.util.spec_from_file_location("mpi_ranks", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_one_process():
    """Every algorithm's run."""
    ranks = load_case()
    return {
        name: domkl.simulate(
            algorithm, *ranks.problem(algorithm), **{"cv": "off", "threads": 1, **options}
        )
        for name, (algorithm, options) in ranks.ALGORITHMS.items()
    }


def test_ranks_equal_one_process(tmp_path):
    """States and predictions to the bit, wherever a learner is; curves to rounding.

    The first rank is alone, and compiles what several would else compile all at once.
    """
    expected = in_one_process()
    for n_ranks in (1, 2, 4):
        folder = tmp_path / str(n_ranks)
        folder.mkdir()
        done = run_ranks(n_ranks, "equal", folder)
        assert done.returncode == 0, done.stderr
        for name, one in expected.items():
            parts = [np.load(folder / f"{name} {rank}.npz") for rank in range(n_ranks)]
            assert_parts_of(one, parts, f"{name} on {n_ranks}")


def assert_parts_of(one, parts, name):
    """What the ranks have together is what one process has."""
    assert sorted(np.concatenate([part["learners"] for part in parts])) == list(range(41)), name
    for part in parts:
        learners = part["learners"]
        np.testing.assert_array_equal(part["predictions"], one.predictions[:, learners], name)
        for field, values in one.state._asdict().items():
            own = values[learners] if len(values) else values
            np.testing.assert_array_equal(part[f"state.{field}"], own, f"{name} {field}")
        np.testing.assert_allclose(part["mse"], one.mse, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(part["cv"], one.cv, rtol=1e-9, err_msg=name)


def test_what_cannot_be_run_is_refused_on_all_ranks(tmp_path):
    done = run_ranks(2, "refused", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused 14") == 2


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raises", "domkl: rank 1 of 3: OSError: the sensor is gone; all ranks are stopped"),
        ("ends", "must have equally many rounds on all ranks, got none for round 17 on 1 of 3"),
        ("killed", "signal 9"),
    ],
)
def test_a_rank_that_dies_ends_all_and_loses_no_kept_round(how, said, tmp_path):
    done = run_ranks(3, how, tmp_path)
    assert done.returncode != 0
    assert said in done.stderr + done.stdout
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"rank{rank}of3-15.npz" for rank in range(3)} <= names
    done = run_ranks(3, "going on", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("went on") == 3
