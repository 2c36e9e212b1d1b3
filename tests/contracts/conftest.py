"""Contracts are about compiled code: here no run goes without it because it is short."""

import pytest

from domkl.core import jit


@pytest.fixture(scope="module", autouse=True)
def compiling():
    """Compile at once; or a short run is interpreted, and compared with itself."""
    patience, jit.PATIENCE = jit.PATIENCE, 0.0
    yield
    jit.PATIENCE = patience
