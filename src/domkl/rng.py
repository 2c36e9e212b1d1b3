"""Random generators that are derived from one seed by name.

Every part of the package that draws numbers has a generator of its own, so that a new part does not
change the draws of the others.
"""

import hashlib

import numpy as np

from domkl.errors import ParameterError
from domkl.typing import Seed


def child(seed: int, *names: str | int) -> np.random.Generator:
    """Make the generator for these names from a seed.

    Examples
    --------
    >>> a, b = child(7, "features", 0), child(7, "features", 0)
    >>> bool(a.random() == b.random())
    True
    >>> bool(child(7, "graph").random() == child(7, "features").random())
    False
    """
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng([_checked(seed), *words])


def generator(seed: Seed, *names: str | int) -> np.random.Generator:
    """Use a generator as it is, or make the named child of an integer seed."""
    return seed if isinstance(seed, np.random.Generator) else child(seed, *names)


def _checked(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError(f"seed must be an integer >= 0, got {seed!r}")
    return int(seed)
