"""The way of a sample through `simulate`, as docs/explanation/design.md lists it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from walk import documented

SCRIPT = Path(__file__).parents[2] / "support" / "simulate_walk.py"


@pytest.mark.slow
def test_the_walk_is_the_documented_one_short_and_without_a_way_back():
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = [sys.executable, str(SCRIPT)]
    out = subprocess.run(run, env=env, check=True, capture_output=True, text=True).stdout
    found = json.loads(out)
    assert found["entries"] == documented("`simulate`")
    assert len(found["entries"]) <= 12
    assert found["returns"] == []
