"""Test a mesh without a network: many learners in one process, in virtual time.

`VirtualNetwork` runs one `Protocol` per learner and moves the frames between them. It loses,
duplicates and delays frames, cuts connections, crashes learners and restarts them from their disks.
Nothing waits for a clock, and all randomness comes from one generator, so every run can be repeated
to the bit.

`draw` makes a random schedule of such faults from a seed, `play` runs it, and `Outcome.broken`
names the guarantees that did not hold. `benchmarks/soak.py` runs thousands of them. Use both to
test an algorithm of your own:

>>> from domkl.mesh.testing import draw, play
>>> schedule = draw(9, "rff-dokl")  # or "module:Name"
>>> schedule.mode, [fault.kind for fault in schedule.faults]
('lockstep', ['suspend', 'cut', 'suspend', 'cut'])
>>> baseline = play(schedule.without_faults())
>>> play(schedule).broken(baseline.error)
[]

`VirtualMesh` is for `domkl.simulate`: its learners then exchange by the protocol of a mesh, with
guards, liars and faults if asked for.
"""

from domkl.mesh.testing.network import Conditions, Machine, VirtualNetwork, neighbors_of
from domkl.mesh.testing.schedules import Fault, Outcome, Schedule, draw, draw_harsh, play
from domkl.mesh.testing.virtual import Distrust, VirtualMesh

__all__ = [
    "Conditions",
    "Distrust",
    "Fault",
    "Machine",
    "Outcome",
    "Schedule",
    "VirtualMesh",
    "VirtualNetwork",
    "draw",
    "draw_harsh",
    "neighbors_of",
    "play",
]
