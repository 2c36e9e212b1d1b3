"""Contracts are about compiled code: here no run goes without it because it is short."""

import pytest

from domkl.algorithms import base


@pytest.fixture(scope="module", autouse=True)
def compiling():
    """Compile at once; or a short run is interpreted, and compared with itself."""
    patience, base.PATIENCE = base.PATIENCE, 0.0
    yield
    base.PATIENCE = patience
