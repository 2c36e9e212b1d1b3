import numpy as np

import domkl


def test_the_bank_is_the_papers():
    """(42): σ_p² = 10^((p−9)/2), p = 1..17."""
    found = [kernel.bandwidth for kernel in domkl.gaussian_bank()]
    np.testing.assert_allclose(found, [10 ** ((p - 9) / 2) for p in range(1, 18)])
