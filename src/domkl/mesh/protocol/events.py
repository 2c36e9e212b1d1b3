"""What the protocol is told and what it asks for: plain values, no I/O.

Events go into `Protocol.handle`, each with the time; effects come out, to be carried out in order.
Inputs and labels are scaled already, by the ranges of the agreed model.
"""

from typing import NamedTuple

from domkl.typing import Floats


class Sample(NamedTuple):
    """A sample to learn; numbers ascend, without gaps, and tell where a checkpoint stands."""

    number: int
    x: Floats  # (d,)
    y: float


class Received(NamedTuple):
    """Bytes of a neighbor, whom the transport vouches for."""

    peer: str
    data: bytes


class Tick(NamedTuple):
    """Time has passed."""


class PeerUp(NamedTuple):
    """The transport has a connection."""

    peer: str


class PeerDown(NamedTuple):
    """The transport lost it."""

    peer: str


class Neighbors(NamedTuple):
    """From now on these are the neighbors, in the order in which sums are taken."""

    names: tuple[str, ...]


Event = Sample | Received | Tick | PeerUp | PeerDown | Neighbors


class Send(NamedTuple):
    """Give this frame to the transport; it may be lost."""

    peer: str
    data: bytes


class Predicted(NamedTuple):
    """What was said of a sample before its label was learned."""

    number: int
    y_hat: float


class Checkpoint(NamedTuple):
    """All samples up to this one are learned: a good moment to save `Protocol.snapshot()`."""

    number: int


class Alarm(NamedTuple):
    """Something an operator should know; ``kind`` is one word of a fixed list."""

    kind: str  # "refused", "mismatch", "down", "up", "left"
    peer: str
    text: str


Effect = Send | Predicted | Checkpoint | Alarm
