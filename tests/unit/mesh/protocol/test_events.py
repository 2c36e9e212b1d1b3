"""Times to wait; what events and effects are for is tested with the protocol."""

import pytest

from domkl.errors import ParameterError
from domkl.mesh.protocol.events import Timing


def test_the_defaults_can_work():
    timing = Timing().check()
    assert timing == Timing()
    assert timing.resend_after < timing.idle_after < timing.round_timeout
    assert 2 * timing.alive_every < timing.silence


@pytest.mark.parametrize("name", Timing._fields)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_every_time_must_be_positive(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        Timing()._replace(**{name: value}).check()
