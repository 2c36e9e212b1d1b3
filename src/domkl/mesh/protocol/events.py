"""What the protocol is told (events), what it asks its driver to do (effects), how long it waits.

All are plain values. Events go into `Protocol.handle`, each with the current time. Effects come out
of it and must be carried out in order. Inputs and labels are scaled by the ranges of the model.
"""

from typing import NamedTuple

from domkl import checks
from domkl.typing import Floats


class Sample(NamedTuple):
    """A sample to learn; a label of NaN is missing: the learner predicts, and follows the others.

    Numbers ascend by one. The first is ``Protocol.learned + 1``, so that after a restart the driver
    knows which samples the checkpoint lacks.
    """

    number: int
    x: Floats  # (d,)
    y: float


class Moment(NamedTuple):
    """What one tick of a learner that forecasts brings: a label, and inputs to forecast from.

    Numbers ascend as those of samples do; ticks ascend, and may leave some out.
    """

    number: int
    tick: int
    y: float  # the label of now; NaN if it was not measured
    then: Floats  # (d,) the inputs that belong to it, of h ticks ago; NaN where missing
    x: Floats  # (d,) the inputs of now, for the label h ticks ahead; NaN where missing
    naive: tuple[float, float]  # forecasts by the last value and by the last season, or NaN


class Received(NamedTuple):
    """A frame came from a peer, whom the transport has authenticated."""

    peer: str
    data: bytes


class Tick(NamedTuple):
    """Time has passed; send one every 50 ms or so."""


#: all ticks are the same
TICK = Tick()


class PeerUp(NamedTuple):
    """The transport has a connection to a neighbor."""

    peer: str


class PeerDown(NamedTuple):
    """The transport has lost the connection to a neighbor."""

    peer: str


class Neighbors(NamedTuple):
    """From now on these are the neighbors, in the order in which sums are taken."""

    names: tuple[str, ...]


Event = Sample | Moment | Received | Tick | PeerUp | PeerDown | Neighbors


class Send(NamedTuple):
    """Give this frame to the transport; it may be lost."""

    peer: str
    data: bytes


class Predicted(NamedTuple):
    """The prediction for a sample, made before its label was used, and what else was predicted."""

    number: int
    y_hat: float
    y: float = 0.0  # the label
    deviation: float | None = None  # of the prediction; None if the algorithm has none
    y_alone: float | None = None  # of the twin without neighbors; None if it is not measured
    y_last: float = 0.0  # the label before
    gap: float | None = None  # mean squared distance to the neighbors' predictions
    horizon: int = 1  # samples from the newest one that was known to the label
    quantiles: tuple[float, ...] | None = None  # of the label, of levels TOLD of learner/local.py


class Forecasted(NamedTuple):
    """The forecast that was made from the inputs of a moment; it is scored when its label comes."""

    number: int
    tick: int  # of the moment
    horizon: int
    y_hat: float | None  # None where inputs are missing
    deviation: float | None  # None if the algorithm has none
    quantiles: tuple[float, ...] | None = None  # likewise


class Checkpoint(NamedTuple):
    """All samples up to this number are learned: now is the time to save `Protocol.snapshot()`.

    The protocol pauses here, so that the snapshot is of exactly this sample. Any event continues
    it; the driver should send a `Tick` soon.
    """

    number: int


class Alarm(NamedTuple):
    """Something that an operator should know."""

    kind: str  # "refused", "mismatch", "down", "up", "left", "distrusted", "suspicious",
    # "senseless" or "doubted"
    peer: str
    text: str


Effect = Send | Predicted | Forecasted | Checkpoint | Alarm


class Timing(NamedTuple):
    """How long the protocol waits, in seconds."""

    round_timeout: float = 1.0  # lockstep: a round ends after this, whoever is missing
    resend_after: float = 0.1  # ask again for an offer that has not come
    idle_after: float = 0.5  # without a sample for so long, step without one for the neighbors
    alive_every: float = 1.0  # send something at least so often
    silence: float = 4.0  # a neighbor that was not heard for so long is down
    start_timeout: float = 10.0  # lockstep: wait so long for all neighbors before the first round

    def check(self) -> "Timing":
        """Raise ParameterError unless every time is positive."""
        for name, value in self._asdict().items():
            checks.positive(name, value)
        return self
