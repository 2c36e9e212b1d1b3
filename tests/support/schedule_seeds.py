"""Which schedules of faults the tests run: by the commit, so that each commit tries others."""

import os
import subprocess
from pathlib import Path

N_SCHEDULES, BATCH = 250, 25
NO_COMMIT = "0"  # of sources outside of a repository


def commit():
    """The commit of these sources, or `NO_COMMIT`; DOMKL_COMMIT stands in for it."""
    given = os.environ.get("DOMKL_COMMIT")
    if given:
        return given
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return NO_COMMIT
    return done.stdout.strip()


def first_seed(name):
    """The first of a commit's seeds.

    >>> first_seed("0"), first_seed("6aa6b24000")
    (0, 111831844)
    """
    return int(name[:7], 16)


COMMIT = commit()
FIRST = first_seed(COMMIT)
REPEAT = f"python benchmarks/soak.py --first {FIRST} --schedules {N_SCHEDULES}"
