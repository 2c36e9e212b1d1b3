import itertools

import numpy as np

import domkl


def test_the_bank_is_the_papers():
    """(42): σ_p² = 10^((p−9)/2), p = 1..17."""
    found = [kernel.bandwidth for kernel in domkl.gaussian_bank()]
    np.testing.assert_allclose(found, [10 ** ((p - 9) / 2) for p in range(1, 18)])


def test_additive_is_the_mean_over_all_sets_of_inputs():
    x, other = np.random.default_rng(0).random((2, 6))
    square = (x - other) ** 2 / (2 * 0.7)
    by_size = [
        np.mean(
            [np.exp(-6 / n * square[list(s)].sum()) for s in itertools.combinations(range(6), n)]
        )
        for n in (2, 4, 6)
    ]
    np.testing.assert_allclose(domkl.Additive(0.7)(x, other), np.mean(by_size))


def test_additive_frequencies_see_two_inputs_four_or_all():
    features = domkl.RandomFeatures.draw([domkl.Additive(1.0)], 6, 9, seed=1)
    assert np.count_nonzero(features.frequencies[0], axis=1).tolist() == [2, 4, 6] * 3
    again = domkl.RandomFeatures.draw([domkl.Additive(1.0)], 6, 9, seed=1)
    assert features.fingerprint == again.fingerprint


def test_additive_of_one_input_is_drawn_as_the_gaussian():
    one, gaussian = (
        domkl.RandomFeatures.draw([kernel], 1, 9, seed=1)
        for kernel in (domkl.Additive(0.5), domkl.Gaussian(0.5))
    )
    assert one.fingerprint == gaussian.fingerprint
