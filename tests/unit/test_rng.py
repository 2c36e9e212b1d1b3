"""Named children of a seed."""

import numpy as np
import pytest

from domkl import rng
from domkl.errors import ParameterError


def test_a_child_depends_on_the_seed_and_all_names():
    draws = {
        rng.child(seed, *names).random()
        for seed in (0, 1)
        for names in (("a",), ("b",), ("a", 0), ("a", 1), ())
    }
    assert len(draws) == 10
    assert rng.child(3, "a", 0).random() == rng.child(3, "a", 0).random()


def test_draws_stay_as_they_are():
    """Results of earlier versions can be repeated."""
    assert rng.child(1, "features", 0).integers(2**32) == 3875616801


def test_a_generator_is_used_as_it_is():
    mine = np.random.default_rng(0)
    assert rng.generator(mine, "a") is mine
    assert rng.generator(2, "a").random() == rng.child(2, "a").random()


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
def test_seeds_that_are_refused(seed):
    with pytest.raises(ParameterError, match="seed must be an integer >= 0"):
        rng.child(seed, "a")
