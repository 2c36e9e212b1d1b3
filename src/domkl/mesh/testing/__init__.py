"""Test a mesh without a network: many learners in one process, in virtual time.

`VirtualNetwork` runs one `Protocol` per learner and moves the frames between them. It loses,
duplicates and delays frames, cuts connections, crashes learners and restarts them from their disks.
Nothing waits for a clock, and all randomness comes from one generator, so every run can be repeated
to the bit.

In a clone, `benchmarks/soak.py` runs thousands of random schedules of such faults; with
``--algorithm module:Name`` it tests an algorithm of your own.

`VirtualMesh` is for `domkl.simulate`: its learners then exchange by the protocol of a mesh, with
guards, liars and faults if asked for.
"""

from domkl.mesh.testing.network import Conditions, Machine, VirtualNetwork, neighbors_of
from domkl.mesh.testing.virtual import Distrust, VirtualMesh

__all__ = [
    "Conditions",
    "Distrust",
    "Machine",
    "VirtualMesh",
    "VirtualNetwork",
    "neighbors_of",
]
