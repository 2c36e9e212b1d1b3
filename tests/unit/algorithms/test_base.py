"""When a host is compiled."""

import numba

from domkl.algorithms import base


def test_small_work_is_not_compiled_until_patience_is_used_up(monkeypatch):
    @numba.njit
    def twice(a):
        return 2 * a

    monkeypatch.setattr(base, "PATIENCE", 1.0)
    assert not base.is_worth_compiling(twice, (1.0,), 0.6)
    assert base.is_worth_compiling(twice, (1.0,), 0.6)
    assert not base.is_worth_compiling(twice, (1,), 0.6)  # another type
    twice(1)
    assert base.is_worth_compiling(twice, (1,), 0.0)
