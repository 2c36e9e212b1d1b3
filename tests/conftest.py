"""Shared settings: a Hypothesis profile that repeats itself, the oracle and helpers on the path.

Linear algebra has one thread, here and in the processes that tests start: on the small matrices of
tests, the threads of several processes mostly wait for each other, and use all cores meanwhile.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded
    os.environ.setdefault(name, "1")

sys.path.insert(0, str(Path(__file__).parent / "oracle"))
sys.path.insert(0, str(Path(__file__).parent / "support"))

collect_ignore = ["data"]  # write.py there runs under other versions

settings.register_profile(
    "domkl",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("domkl"), max_examples=20)
settings.load_profile("domkl")


def pytest_terminal_summary(terminalreporter):
    """Name the seeds of the schedules of faults; say so where the page cannot be tested."""
    import browser
    import schedule_seeds as seeds

    reports = [each for found in terminalreporter.stats.values() for each in found]
    if any("test_mesh_schedules" in getattr(each, "nodeid", "") for each in reports):
        last = seeds.FIRST + seeds.N_SCHEDULES - 1
        terminalreporter.write_line(
            f"schedules of faults: seeds {seeds.FIRST} to {last}, of commit {seeds.COMMIT[:7]};"
            f" repeat them by\n  {seeds.REPEAT}"
        )
    why = browser.missing()
    if why is not None:
        terminalreporter.write_line(f"the live page was not tested in a browser: it {why}")


@pytest.fixture(scope="session", autouse=True)
def compiled(request, tmp_path_factory):
    """Under pytest-xdist, the compiled hosts are in Numba's cache before the first test."""
    if hasattr(request.config, "workerinput"):
        from warm import warm_up

        warm_up(request.config.cache, tmp_path_factory.getbasetemp().parent)


@pytest.fixture(scope="session")
def data_dir():
    """Folder with the files of the sets that are not shipped; skips where there is none."""
    named = os.environ.get("DOMKL_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not (folder / "Bias_correction_ucl.csv.gz").exists():
        pytest.skip(
            f"needs the files of the data sets; set DOMKL_DATA to their folder, not {folder}"
        )
    return folder
