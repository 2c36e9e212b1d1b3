"""Whether numbers that came from elsewhere may be let in."""

from domkl.core.jit import sweep
from domkl.typing import Array


@sweep
def is_within(values: Array, limit: float) -> bool:
    """Whether every number of a 1-D array is finite and at most ``limit`` in size."""
    for i in range(len(values)):  # noqa: SIM110  Numba knows no all()
        if not -limit <= values[i] <= limit:  # NaN is not
            return False
    return True
