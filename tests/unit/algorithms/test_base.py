"""When a host is compiled."""

import numba

import domkl
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


def test_a_run_adds_nothing_to_the_parameters_of_an_algorithm():
    """What hosts find out about a class is not kept among an instance's own values."""

    class Bare(domkl.Algorithm):
        exchange = {"theta": "sum"}  # noqa: RUF012

        def init(self, sizes): ...

        def predict(self, state, inputs): ...

        def local_step(self, state, inputs, y, prediction, net): ...

        def merge(self, state, heard, net): ...

    bare = Bare()
    assert not bare.takes_said
    assert bare.parameters() == {}
    assert domkl.DOMKL().takes_said
