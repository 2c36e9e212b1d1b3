"""Small models, and `Talk`: protocols whose frames a test moves by hand."""

import numpy as np
import pytest

import domkl
from domkl.mesh.protocol.events import Alarm, PeerUp, Received, Sample, Send, Tick
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.protocol.wire import decode


def small_model(algorithm=None, *, seed=1, kernels=(0.01, 1.0), n_frequencies=3, **changes):
    algorithm = domkl.DOMKL() if algorithm is None else algorithm
    if algorithm.single_kernel:
        kernels = kernels[:1]
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank(kernels), 2, n_frequencies, seed=seed)
    given = {"inputs": (Range("a", 0, 1), Range("b", 0, 1)), "target": Range("y", 0, 1)}
    return Model(algorithm, features, **(given | changes))


def house_model(n_inputs=2, outside="clip", inputs=None):
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0, 10.0]), n_inputs, 5, seed=1)
    inputs = inputs or (Range("a", 0.0, 10.0), Range("b", -1.0, 1.0))[:n_inputs]
    target = Range("load", 0.0, 100.0)
    return Model(domkl.DOMKL(), features, inputs, target, outside=outside)


@pytest.fixture
def model():
    return house_model()


@pytest.fixture
def refusing():
    return house_model(outside="refuse")


@pytest.fixture(scope="session")
def model_of():
    return small_model


class Talk:
    """Protocols, and the frames between them, which the test delivers or loses."""

    def __init__(self, protocols):
        self.all = {each.name: each for each in protocols}
        self.air = []  # (to, from, frame)
        self.effects = {name: [] for name in self.all}
        self.now = 0.0

    def tell(self, name, event):
        for effect in self.all[name].handle(event, self.now):
            if isinstance(effect, Send):
                self.air.append((effect.peer, name, effect.data))
            else:
                self.effects[name].append(effect)

    def deliver(self, is_lost=lambda to, frame: False):
        """Deliver all frames, and the answers to them, except the lost ones."""
        while self.air:
            to, sender, data = self.air.pop(0)
            if to in self.all and not is_lost(to, decode(data, 10**6)):
                self.tell(to, Received(sender, data))

    def tick(self, seconds=0.0, is_lost=lambda to, frame: False):
        """Let time pass, with a tick every 50 ms as a node has them."""
        for _ in range(max(1, round(seconds / 0.05))):
            self.now += 0.05 if seconds else 0.0
            for name in self.all:
                self.tell(name, Tick())
            self.deliver(is_lost)

    def meet(self):
        for name, each in self.all.items():
            for other in each.edges.by_peer:
                self.tell(name, PeerUp(other))
        self.deliver()

    def learn(self, name, y=0.5, x=(0.3, 0.6)):
        each = self.all[name]
        self.tell(name, Sample(each.learned + each.n_queued + 1, np.array(x), y))

    def alarms(self, name, kind):
        return [e.text for e in self.effects[name] if isinstance(e, Alarm) and e.kind == kind]


def pair(model, other=None, *, a=None, b=None, **options):
    """Two neighbors, a and b."""
    options = {"incarnation": 1, "measures_alone": False} | options
    first = Protocol("a", model, ["b"], **(options | (a or {})))
    second = Protocol("b", other or model, ["a"], **(options | (b or {})))
    return Talk([first, second])


@pytest.fixture(scope="session")
def talk_of():
    return pair


@pytest.fixture(scope="session")
def talk():
    return Talk
