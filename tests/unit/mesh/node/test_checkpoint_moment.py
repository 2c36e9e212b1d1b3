"""A snapshot taken when a checkpoint is asked for is of the sample that it names."""

import numpy as np

from domkl.mesh.config.file import MeshConfig
from domkl.mesh.config.topology import members_at
from domkl.mesh.protocol.events import Checkpoint, Predicted, Sample, Tick
from domkl.mesh.protocol.model import Range
from domkl.mesh.protocol.protocol import Protocol


def test_nothing_is_learned_between_a_checkpoint_and_its_snapshot():
    config = MeshConfig(
        members_at("ab", ["127.0.0.1"]), (("a", "b"),), Range("y", 0.0, 1.0), lags=1,
        kernels=(1.0,), n_frequencies=2,
    )  # fmt: skip
    protocol = Protocol("a", config.model(), ("b",), incarnation=1, checkpoint_every=2)
    for number in range(1, 6):  # they wait for the neighbor, who never comes
        protocol.handle(Sample(number, np.zeros(1), 0.5), 0.0)
    learned, saved = [], []
    for tick in range(5):
        effects = protocol.handle(Tick(), 20.0 + tick)
        learned += [each.number for each in effects if isinstance(each, Predicted)]
        for effect in effects:
            if isinstance(effect, Checkpoint):
                saved.append((effect.number, protocol.snapshot().header["learned"], learned[-1]))
    assert learned == [1, 2, 3, 4, 5]
    assert saved == [(2, 2, 2), (4, 4, 4)]
