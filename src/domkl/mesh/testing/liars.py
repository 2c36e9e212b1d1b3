"""Liars for tests of a mesh: learners that follow the protocol and change what they offer.

`VirtualNetwork.liars` has a `Liar` by the name of a learner. Each lie changes the fields of an
offer, and nothing else of the frame.
"""

from collections.abc import Callable

import numpy as np

from domkl.mesh.protocol import wire
from domkl.mesh.protocol.wire import OfferFormat
from domkl.speech.base import Fields


class Liar:
    """What a learner says instead of the truth, from one of its samples on.

    Parameters
    ----------
    kind : str
        One of `LIES`.
    since, until : int
        Samples between which it lies.
    """

    def __init__(self, kind: str, since: int = 0, until: float = np.inf) -> None:
        self._change = LIES[kind]
        self.since, self.until = since, until
        self.first: Fields = {}  # the fields of the first lie, before it
        self.generator = np.random.default_rng(3)

    def change(self, data: bytes, learned: int, offers: OfferFormat) -> bytes:
        """Return the frame that is sent instead; ``learned`` is the liar's number of samples."""
        frame = wire.decode(data, offers.n_bytes)
        if frame.kind is not wire.Kind.OFFER or not self.since <= learned < self.until:
            return data
        offer = offers.unpack(frame.payload)
        if not self.first:
            self.first = {field: values.copy() for field, values in offer.fields.items()}
        told = offer.fields | self._change(self, offer.fields, learned - self.since)
        return wire.encode(frame._replace(payload=offers.repack(offer._replace(fields=told))))


def _shifted(fields: Fields, by: np.ndarray) -> Fields:
    """θ shifted by this; DOMKRLS says S = Nθ."""
    if "sums" not in fields:
        return {"theta": fields["theta"] + by}
    return {"sums": fields["sums"] + fields["counts"][:, :, None] * by}


def _flip(liar: Liar, fields: Fields, n: int) -> Fields:
    name = _estimate(fields)
    return {name: -fields[name]}


def _shift(liar: Liar, fields: Fields, n: int) -> Fields:
    return _shifted(fields, np.array(0.02))


def _drift(liar: Liar, fields: Fields, n: int) -> Fields:
    return _shifted(fields, np.array(2e-4 * n))


def _noise(liar: Liar, fields: Fields, n: int) -> Fields:
    shape = fields[_estimate(fields)].shape
    return _shifted(fields, 0.1 * liar.generator.standard_normal(shape))


def _frozen(liar: Liar, fields: Fields, n: int) -> Fields:
    return liar.first


def _rigged(liar: Liar, fields: Fields, n: int) -> Fields:
    loss = fields["loss"]
    return {"loss": 10 * (loss.max() + loss.min() - loss)}


def _single(liar: Liar, fields: Fields, n: int) -> Fields:
    name = _estimate(fields)
    return {name: np.full_like(fields[name], 0.99e6)} if n < 2 else {}


def _estimate(fields: Fields) -> str:
    return "sums" if "sums" in fields else "theta"


LIES: dict[str, Callable[[Liar, Fields, int], Fields]] = {
    "flip": _flip,  # −θ
    "shift": _shift,  # θ + 0.02
    "noise": _noise,  # θ and normal noise of deviation 0.1
    "frozen": _frozen,  # always the same message
    "rigged": _rigged,  # the best kernel's loss is the worst, and ten times what it is
    "single": _single,  # 10⁶ for two rounds, and then honest
    "drift": _drift,  # θ and 0.0002 more each sample
}
