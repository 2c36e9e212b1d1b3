"""Liars for tests of a mesh: learners that follow the protocol and change what they offer.

`VirtualNetwork.liars` has a `Liar` by the name of a learner. A `Lie` changes the fields of an
offer, or when and to whom they are told; `LIES` has the plain ones by name. A learner whose labels
are wrong, and which says honestly what it learned of them, is a matter of its samples.
"""

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.least_squares import memories
from domkl.algorithms.mixtures import CLIP
from domkl.errors import ParameterError
from domkl.mesh.protocol import wire
from domkl.mesh.protocol.wire import Offer, OfferFormat
from domkl.rng import child
from domkl.speech.base import Fields
from domkl.typing import Floats

TINY = 1e-300
#: exchanges after which an offer is old
OLD = 50
#: counts that a memory which forgets can have, whatever its parameters
MOST_COUNTS = (np.inf, 100.0)


class Lie(NamedTuple):
    """What a liar says instead of the truth; the defaults are the truth, at any radius.

    What it says of θ is ``scale`` times that of its ``base``, and a push in a direction. The liar
    knows what the neighbor said last.
    """

    base: str = "own"  # or "peer" (its last), "none", "first" (of the lie), "old", "rolled" (own)
    scale: float = 1.0
    push: float = 0.0  # of each coordinate, in units
    drift: float = 0.0  # more each sample
    unit: str = "one"  # or "own": size of θ; "gap": true distance; "radius": that the neighbor has
    toward: str = "constant"  # or "apart" (by neighbor), "noise", "random" (fixed), "away" (from
    # θ), "beyond" (from θ to what the neighbor said, and on)
    kernel: str = "all"  # or "best", "worst": by own losses
    since: float = 0  # samples between which it lies
    until: float = np.inf
    every: int = 1  # of so many samples it lies for the first
    length: int = 1
    only: str = ""  # the neighbor to whom it lies; empty for all
    epochs: int = 0  # exchanges after which it begins a new epoch; 0 for never
    counts: float = 0.0  # claimed number of samples, 0 for the true one
    ratchet: float = 0.0  # by which that grows each sample, as a share
    loss: float = 1.0  # factors of the accounts
    order: str = "true"  # or "reversed": the best kernel's loss is the worst
    variance: float = 1.0
    rounds: float = 1.0
    regret: float = 0.0  # as a share of the most that is possible, between -1 and 1; 0 for the true
    residual: float = 1.0
    radius: float = np.inf  # factor of how far it lets itself be moved, where learners say that
    degree: int = -1  # claimed number of neighbors
    labels: str = "true"  # or "flipped", "biased", "noise", "high": what it learns from
    rate: int = 1  # samples that it learns in the time of one; its driver must give it those

    @classmethod
    def parse(cls, text: str) -> "Lie":
        """Read what `str` gives, such as "scale=-1 since=50"."""
        defaults: dict[str, Any] = cls._field_defaults
        given = dict(each.partition("=")[::2] for each in text.split())
        for name in given:
            checks.choice("lie", name, tuple(defaults))
        try:
            return cls(**{name: type(defaults[name])(value) for name, value in given.items()})
        except ValueError as error:
            raise ParameterError(f"lie must have numbers: {error}") from None

    def __str__(self) -> str:
        default: dict[str, Any] = self._field_defaults
        said = (f"{name}={v}" for name, v in self._asdict().items() if v != default[name])
        return " ".join(said)

    def is_told(self, learned: int, peer: str) -> bool:
        """Whether it is told to this neighbor after so many samples."""
        is_time = self.since <= learned < self.until
        is_turn = (learned - self.since) % self.every < self.length
        return is_time and is_turn and self.only in ("", peer)

    def labels_of(self, y: Floats, seed: int = 0) -> Floats:
        """Return the labels (T,) from which the liar learns, in [0, 1]."""
        wrong = {
            "true": y,
            "flipped": 1 - y,
            "biased": y + 0.2,
            "noise": child(seed, "labels").random(len(y)),
            "high": np.ones(len(y)),
        }[self.labels]
        number = np.arange(1, len(y) + 1)
        return np.where((self.since <= number) & (number < self.until), wrong, y)


LIES = {
    "flip": Lie(scale=-1.0),  # −θ
    "shift": Lie(push=0.02),  # θ + 0.02
    "noise": Lie(push=0.1, toward="noise"),  # θ and normal noise of deviation 0.1
    "frozen": Lie(base="first"),  # always the same message
    "rigged": Lie(order="reversed", loss=10.0),  # the best kernel's loss is the worst, ten times
    "single": Lie(base="none", push=0.99e6, every=10**9, length=2),  # for two rounds, then honest
    "drift": Lie(drift=2e-4),  # θ and 0.0002 more each sample
}


class Liar:
    """A learner that lies.

    Parameters
    ----------
    lie : str or Lie
        If it is a text, one of `LIES`.
    since, until : float
        Samples between which it lies, for a text.
    """

    def __init__(self, lie: str | Lie, since: float = 0, until: float = np.inf) -> None:
        plain = lie if isinstance(lie, Lie) else LIES[lie]._replace(since=since, until=until)
        self.lie = plain
        self.first: Fields = {}  # the fields of the first lie, before it
        self.old: deque[Fields] = deque(maxlen=OLD)  # the last true ones
        self.generator = child(0, "noise")

    def change(
        self,
        data: bytes,
        learned: int,
        offers: OfferFormat,
        peer: str = "",
        heard: Offer | None = None,
    ) -> bytes:
        """Return the frame that is sent instead.

        ``learned`` is the liar's number of samples; ``heard`` is what the neighbor said last.
        """
        frame, lie = wire.decode(data, offers.n_bytes), self.lie
        if frame.kind is not wire.Kind.OFFER:
            return data
        offer = offers.unpack(frame.payload)
        self.old.append(offer.fields)
        if not lie.is_told(learned, peer):
            return data
        self.first = self.first or offer.fields
        told = offer.fields | self._fields(offer.fields, learned - lie.since, peer, heard)
        changed: dict[str, Any] = {"fields": told}
        if lie.degree >= 0:
            changed["degree"] = lie.degree
        if lie.radius != 1 and "radii" in offer._fields:
            changed["radii"] = np.nan_to_num(lie.radius * _radii(offer), nan=np.inf, posinf=np.inf)
        return wire.encode(frame._replace(payload=offers.repack(offer._replace(**changed))))

    def _fields(self, own: Fields, n: float, peer: str, heard: Offer | None) -> Fields:
        lie = self.lie
        said = {"first": self.first, "old": self.old[0]}.get(lie.base, own)
        true, theta = _theta(own), _theta(said)
        if lie.base in ("peer", "none"):
            is_known = lie.base == "peer" and heard is not None
            theta = _theta(heard.fields) if is_known and heard else np.zeros_like(theta)
        if lie.base == "rolled":
            theta = np.roll(theta, 1, axis=2)
        size = (lie.push + lie.drift * n) * self._unit(own, heard)
        theta = lie.scale * theta + size * self._direction(true, peer, heard)
        if lie.kernel != "all":
            best = np.argmin(own["loss"] if lie.kernel == "best" else -own["loss"])
            theta = np.where((np.arange(theta.shape[1]) == best)[:, None], theta, true)
        return self._estimate(said, theta, n) | _accounts(said, lie)

    def _unit(self, own: Fields, heard: Offer | None) -> Floats:
        """Return the size of a push of 1 in each coordinate, (R, 1)."""
        true, kind = _theta(own), self.lie.unit
        radii = np.empty(0) if heard is None else _radii(heard)
        if kind == "radius" and len(radii):
            counts = own["counts"][0] if "counts" in own else np.ones(len(radii))
            least = np.maximum(counts, 1.0) * np.sqrt(true.shape[2])
            return np.where(np.isinf(radii), 1.0, radii / least)[:, None]
        apart = true if heard is None or kind == "own" else true - _theta(heard.fields)
        return np.array([[1.0 if kind == "one" else _size(apart)]])

    def _direction(self, true: Floats, peer: str, heard: Offer | None) -> Floats:
        kind = self.lie.toward
        if kind in ("away", "beyond"):
            is_beyond = kind == "beyond" and heard is not None
            apart = _theta(heard.fields) - true if is_beyond and heard else -true
            return apart / max(_size(apart), TINY)
        if kind in ("constant", "apart"):
            is_odd = kind == "apart" and sum(peer.encode()) % 2
            return np.full_like(true, -1.0 if is_odd else 1.0)
        generator = self.generator if kind == "noise" else child(0, "direction")
        return generator.standard_normal(true.shape)

    def _estimate(self, said: Fields, theta: Floats, n: float) -> Fields:
        if "theta" in said:
            return {"theta": theta}
        counts, lie = said["counts"], self.lie
        if lie.counts or lie.ratchet:
            most = np.array(MOST_COUNTS)[memories(counts.shape[1])]
            claimed = lie.counts or counts
            counts = np.minimum(claimed * (1 + lie.ratchet) ** n, most) * np.ones_like(counts)
        return {"counts": counts, "sums": counts[:, :, None] * theta}


def _accounts(said: Fields, lie: Lie) -> Fields:
    """Return the losses and, of DOMKRLS, the accounts, as an honest run could have them."""
    if "loss" not in said:
        return {}
    loss = said["loss"]
    if lie.order == "reversed":
        loss = loss.max() + loss.min() - loss
    told: Fields = {"loss": lie.loss * loss}
    if "regret" in said:
        variance, rounds = lie.variance * said["variance"], lie.rounds * said["rounds"]
        most = np.sqrt(rounds[:, None] * variance)
        regret = lie.regret * most if lie.regret else np.clip(said["regret"], -most, most)
        residual = np.clip(lie.residual * said["residual"], -CLIP, CLIP)
        told |= {"variance": variance, "rounds": rounds, "regret": regret, "residual": residual}
    return told


def _theta(fields: Fields) -> Floats:
    """θ, (1, F, D); DOMKRLS says S = Nθ."""
    if "theta" in fields:
        return fields["theta"]
    return fields["sums"] / np.maximum(fields["counts"], TINY)[:, :, None]


def _radii(offer: Offer) -> Floats:
    """How far a learner lets itself be moved, by row; empty where offers do not say it."""
    radii: Floats = getattr(offer, "radii", np.empty(0))
    return radii


def _size(values: Floats) -> float:
    return float(np.sqrt(np.mean(values * values)))
