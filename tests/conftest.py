"""Shared settings: a Hypothesis profile that repeats itself, and the oracle on the path."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "oracle"))

settings.register_profile(
    "domkl",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("domkl")
