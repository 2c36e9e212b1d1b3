"""What the process of a node loads, from its start to its end."""

import json
import re
import subprocess
import sys

import pytest
from mesh_node import sample, solo_folder

pytestmark = pytest.mark.slow

FORBIDDEN = {"matplotlib", "scipy", "tqdm", "jinja2", "joblib", "pandas", "sklearn", "river"}
FORBIDDEN |= {"prometheus_client"}  # before somebody asks for metrics
#: what Numba tries to import, and is told that it is not there; a name is listed all the same. An
#: import of SciPy that succeeds lists scipy.version and many more.
TRIED = {"scipy", "scipy.linalg", "scipy.linalg.cython_blas"}


def test_a_node_loads_no_library_of_plots_reports_or_progress(tmp_path):
    """Python names every module that the process imports, until it has learned and ends."""
    lines = "".join(json.dumps(sample(k)) + "\n" for k in range(20))
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "domkl",
        "node",
        str(solo_folder(tmp_path)),
    ]
    done = subprocess.run(
        [*command, "--stdin", "--until-end"],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
    )
    names = re.findall(r"^import time: .*\| +([\w.]+)$", done.stderr, re.M)
    packages = {name.partition(".")[0] for name in names}
    assert {"numba", "uvicorn", "cryptography"} <= packages  # the list is that of a whole node
    assert {n for n in names if n.partition(".")[0] in FORBIDDEN} <= TRIED
