"""`VirtualMesh`: learners of a simulation that exchange by the protocol of a mesh."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from domkl import checks, rng
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.testing.liars import LIES, Liar
from domkl.mesh.testing.network import FIRST_SAMPLE, Conditions, VirtualNetwork, neighbors_of
from domkl.typing import Floats

#: seconds between two rounds
PERIOD = 0.1


class Distrust(NamedTuple):
    """A learner that lets in hardly anything of a neighbor from a round on, or nothing."""

    trial: int
    round: int
    learner: int
    neighbor: int
    why: str


class VirtualMesh:
    """How learners exchange in `domkl.simulate`, if asked for: as the nodes of a mesh do.

    A round lasts a tenth of a second of virtual time. Without guards, liars and faults the results
    are those of `simulate`, to the bit.

    Parameters
    ----------
    guard : bool
        Whether learners let neighbors move them by no more than their own samples do, and give out
        predictions near those without neighbors, as in a mesh.
    liars : mapping, optional
        By the number of a learner what it does: the name of a lie, told in all rounds, or a pair of
        the name and the first such round, from 0 on. Lies are "flip", "shift", "noise", "frozen",
        "rigged", "single" and "drift".
    mode : "lockstep" or "async"
    conditions : Conditions
        What the network does to each frame.
    seed : int
        Seed of what happens to frames.

    Attributes
    ----------
    networks : dict of VirtualNetwork
        By number of the trial, after a simulation.

    Examples
    --------
    >>> import domkl
    >>> generator = np.random.default_rng(0)
    >>> X = generator.random((300, 4, 2)); y = np.sin(3 * X[..., 0])
    >>> features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), n_inputs=2, seed=7)
    >>> given = domkl.DOMKL(), X, y, domkl.Graph.complete(4), features
    >>> lied_to = domkl.simulate(*given, mesh=VirtualMesh(liars={2: ("flip", 50)}))
    >>> mesh = VirtualMesh(guard=True, liars={2: ("flip", 50)})
    >>> guarded = domkl.simulate(*given, mesh=mesh)
    >>> bool(guarded.mse[-1] < 0.1 * lied_to.mse[-1])
    True
    >>> edges = mesh.networks[0].machines["0"].protocol.measures.edges
    >>> {peer for peer, edge in edges.items() if edge.share < 0.5}  # hardly let in
    {'2'}
    """

    def __init__(
        self,
        *,
        guard: bool = False,
        liars: Mapping[int, str | tuple[str, int]] | None = None,
        mode: Literal["lockstep", "async"] = "lockstep",
        conditions: Conditions = Conditions(),  # noqa: B008  frozen
        seed: int = 0,
    ) -> None:
        if not isinstance(conditions, Conditions):
            raise ParameterError(f"conditions must be a Conditions, got {conditions!r}")
        if liars is not None and not isinstance(liars, Mapping):
            raise ParameterError(f"liars must be a mapping such as {{2: 'flip'}}, got {liars!r}")
        self.guard, self.conditions = bool(guard), conditions
        self.mode = checks.choice("mode", mode, ("lockstep", "async"))
        self.seed = checks.whole("seed", seed, 0)
        self.liars = {k: _lie(k, given) for k, given in (liars or {}).items()}
        self.networks: dict[int, VirtualNetwork] = {}

    @property
    def distrusted(self) -> list[Distrust]:
        """Who found whom suspicious, or ignored it, since when and why; by trial, then by time."""
        return [
            Distrust(
                trial, _round_at(moment), int(name), int(alarm.peer), alarm.text.split(": ", 1)[1]
            )
            for trial, network in sorted(self.networks.items())
            for moment, name, alarm in network.alarms
            if alarm.kind in ("suspicious", "distrusted")
        ]

    def __call__(
        self,
        graph: Graph,
        features: RandomFeatures,
        algorithm: Algorithm,
        options: Any,
        trial: int,
    ) -> Callable[[Floats, Floats], tuple[Any, Floats]]:
        """Make the network of a trial; return what learns a round in it."""
        unknown = [k for k in self.liars if k >= graph.n_learners]
        if unknown:
            raise ParameterError(
                f"liars must be among the {graph.n_learners} learners, from 0 on, got {unknown[0]}"
            )
        d = features.n_inputs
        ranges = tuple(Range(f"x{i}", 0, 1) for i in range(d))
        name: Any = np.dtype(options.dtype).name
        agreed = {"dtype": name, "delay": options.delay, "speech": options.speech}
        network = VirtualNetwork(
            Model(algorithm, features, ranges, Range("y", 0, 1), **agreed),
            neighbors_of(graph),
            np.empty((0, graph.n_learners, d)),
            np.empty((0, graph.n_learners)),
            mode=self.mode,
            period=PERIOD,
            conditions=self.conditions,
            generator=rng.generator(self.seed, "frames", trial),
            is_guarded=self.guard,
        )
        liars = self.liars.items()  # in round t, from 0 on, it has learned t + 1 samples
        network.liars = {str(k): Liar(kind, since + 1) for k, (kind, since) in liars}
        network.run(FIRST_SAMPLE)
        self.networks[trial] = network

        def step(x: Floats, y: Floats) -> tuple[Any, Floats]:
            network.add_round(x, y)
            network.run(network.now + PERIOD)
            states, number = network.states(), len(network.y)
            parts = zip(*states, strict=True)
            given = [each.predictions.get(number, np.nan) for each in network.machines.values()]
            return type(states[0])(*map(np.concatenate, parts)), np.array(given)

        return step


def _lie(k: int, given: str | tuple[str, int]) -> tuple[str, int]:
    checks.whole("liars", k, 0)
    if not isinstance(given, str) and not (isinstance(given, tuple) and len(given) == 2):
        raise ParameterError(f"liars[{k}] must be a lie, or a lie and its round, got {given!r}")
    kind, since = (given, 0) if isinstance(given, str) else given
    checks.choice(f"liars[{k}]", kind, tuple(LIES))
    return kind, checks.whole(f"liars[{k}]", since, 0)


def _round_at(moment: float) -> int:
    return math.floor((moment - FIRST_SAMPLE) / PERIOD + 1e-6)  # a frame takes longer than that
