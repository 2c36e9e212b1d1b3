"""Laws of the feature map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import domkl

KERNELS = [
    domkl.Gaussian(0.5),
    domkl.Laplacian(2.0),
    domkl.Cauchy(1.5),
    domkl.Additive(0.8),
    domkl.Matern(1.0, smoothness=0.5),
    domkl.Matern(0.7, smoothness=2.5),
]


@given(
    st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 30), st.sampled_from([1, 1e2, 1e4])
)
def test_the_norm_is_one(seed, n_inputs, n_frequencies, size):
    rng = np.random.default_rng(seed)
    features = domkl.RandomFeatures(rng.normal(size=(3, n_frequencies, n_inputs)) * size)
    z = features(rng.normal(size=(5, n_inputs)))
    np.testing.assert_allclose(np.sum(z**2, axis=-1), 1, rtol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(seed=st.integers(0, 10**6), n_frequencies=st.sampled_from([50, 200, 800]))
def test_the_error_shrinks_as_one_over_root_m(kernel, seed, n_frequencies):
    """A mean of M terms in [-1, 1]: by Hoeffding, one of 100 examples × 20 pairs is off by more
    than 9/√(2M) with probability below 2000 · 2 exp(-81/4) = 7e-6.
    """
    rng = np.random.default_rng(seed)
    x, other = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    features = domkl.RandomFeatures.draw([kernel], 3, n_frequencies, seed=seed)
    products = np.sum(features(x)[:, 0] * features(other)[:, 0], axis=-1)
    assert np.abs(products - kernel(x, other)).max() < 9 / np.sqrt(2 * n_frequencies)


@pytest.mark.parametrize(
    ("kernel", "orthogonal"),
    [(kernel, False) for kernel in KERNELS] + [(k, True) for k in KERNELS if k.is_isotropic],
    ids=repr,
)
def test_products_approach_the_kernel(kernel, orthogonal):
    """Bias and worst case apart. The mean over M frequencies has a standard deviation of at most
    1/√(2M); 4.5 of them over 200 pairs fail by chance with probability below 2e-3, and the seed is
    fixed.
    """
    rng = np.random.default_rng(5)
    x, other = rng.random((200, 3)), rng.random((200, 3))
    exact = kernel(x, other)
    for n_frequencies in (100, 10_000):
        features = domkl.RandomFeatures.draw(
            [kernel], 3, n_frequencies, seed=11, orthogonal=orthogonal
        )
        error = np.sum(features(x)[:, 0] * features(other)[:, 0], axis=-1) - exact
        assert np.abs(error).max() < 4.5 / np.sqrt(2 * n_frequencies)
    assert abs(error.mean()) < 3 / np.sqrt(2 * n_frequencies)


def test_orthogonal_features_keep_each_frequency_normal():
    """Directions orthogonal in blocks of d, radii chi with d degrees of freedom."""
    d, sigma2 = 4, 0.25
    features = domkl.RandomFeatures.draw([domkl.Gaussian(sigma2)], d, 8000, seed=3, orthogonal=True)
    v = features.frequencies[0] * np.sqrt(sigma2)
    block = v[:d] / np.linalg.norm(v[:d], axis=1, keepdims=True)
    np.testing.assert_allclose(block @ block.T, np.eye(d), atol=1e-12)
    assert stats.kstest(np.linalg.norm(v, axis=1), stats.chi(d).cdf).pvalue > 1e-3
    assert stats.kstest(v[::d, 0], stats.norm.cdf).pvalue > 1e-3


def test_one_seed_one_map():
    bank = domkl.gaussian_bank()
    a = domkl.RandomFeatures.draw(bank, n_inputs=5, n_frequencies=20, seed=7)
    b = domkl.RandomFeatures.draw(bank, n_inputs=5, n_frequencies=20, seed=7)
    c = domkl.RandomFeatures.draw(bank, n_inputs=5, n_frequencies=20, seed=8)
    assert a == b
    assert a.fingerprint == b.fingerprint
    assert a != c
    # a kernel's draw does not depend on the kernels after it
    alone = domkl.RandomFeatures.draw(bank[:1], n_inputs=5, n_frequencies=20, seed=7)
    assert alone == a.kernel(0)


@pytest.mark.parametrize("change", ["value", "shape", "linear"])
def test_the_fingerprint_sees_every_difference(change):
    v = np.arange(12.0).reshape(1, 4, 3)
    other = {"value": v + np.eye(4, 3) * 1e-15 * 8, "shape": v.reshape(2, 2, 3), "linear": v}
    a = domkl.RandomFeatures(v)
    b = domkl.RandomFeatures(other[change], linear=change == "linear")
    assert a.fingerprint != b.fingerprint


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_features_do_not_depend_on_company(seed, n_rows):
    rng = np.random.default_rng(seed)
    features = domkl.RandomFeatures(rng.normal(size=(2, 7, 5)) * 30, linear=True)
    x = rng.normal(size=(n_rows, 5))
    together = features(x)
    for row, z in zip(x, together, strict=True):
        np.testing.assert_array_equal(features(row), z)


@pytest.mark.parametrize(("dtype", "budget"), [("float64", 1e-11), ("float32", 1.2e-6)])
def test_far_out_angles_are_reduced_exactly(dtype, budget):
    """Angles of thousands: the error stays that of angles near 0, in float32 too."""
    rng = np.random.default_rng(0)
    v = rng.normal(size=(1, 50, 81)) * 100
    x = rng.random((40, 81))
    angle = np.einsum("nd,md->nm", x.astype(np.longdouble), v[0].astype(np.longdouble))
    assert np.abs(angle).max() > 1000
    exact = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    z = domkl.RandomFeatures(v)(x, dtype=dtype)[:, 0] * np.sqrt(50)
    assert np.abs(z - exact).max() < budget


def test_the_linear_kernel_is_inputs_and_a_constant_padded():
    features = domkl.RandomFeatures(np.ones((2, 3, 8)), linear=True)
    x = np.arange(8.0)
    z = features(x)
    assert (features.n_kernels, features.n_features) == (3, 9)
    np.testing.assert_array_equal(z[2], [*x, 1.0])
    np.testing.assert_array_equal(z[:2, 6:], 0)
