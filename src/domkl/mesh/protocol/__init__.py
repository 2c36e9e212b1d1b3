"""The protocol of a mesh: how one learner exchanges messages with its neighbors.

`Protocol` (protocol.py) is the whole of it as a state machine. It does no I/O, reads no clock and
draws no random numbers: a *driver* tells it what happened (events, each with the time) and carries
out what it asks for (effects). So the same code runs in a node over TLS or Zenoh, in tests with
virtual time, and in the example below over a Python list.

Steps and rounds
----------------
A step of a learner is one round of its algorithm: predict the sample's label, learn it, offer the
resulting message to all neighbors, and merge what they offer. A learner is in one of two states:

between steps
    It waits for a `Sample`. If a neighbor has made an offer and no sample comes for
    `Timing.idle_after`, the learner makes a step without a sample, so that it follows the others.
    In lockstep mode the first step waits until all edges are open, at most `Timing.start_timeout`.
waiting (`Protocol.is_waiting`)
    It has made its offers and waits until each neighbor's counterpart has come, at most
    `Timing.round_timeout`. Then it merges. Samples that come meanwhile are queued.

In async mode the learner waits in the same way, but a sample that comes meanwhile ends the step
with whatever was heard, and so does a neighbor that waits for another step. Exchanges that are not
complete then are completed later, and their effect on the duals of ADMM is added when they are.

Edges
-----
An edge connects two neighbors; each has an `Edge` for its end (edges.py). An end is in one of two
states:

closed
    The two do not know each other's epoch numbers yet. Each greets the other with a HELLO, at once
    when the transport reports a connection, and then repeatedly.
open
    Both know both numbers. Offers are exchanged in numbered pairs: offer n + 1 is made only after
    both offers n were heard. A missing offer is asked for again (ASK). An ALIVE is sent when there
    is nothing else to send.

An open end closes when the neighbor greets with a new number, says BYE, or is not heard for
`Timing.silence`. Then everything that the edge added to the duals in this epoch is subtracted
again, at both ends, so that the duals of the network always sum to 0. A lost connection alone does
not close an edge: the transport usually restores it soon.

Events and effects
------------------
============================ =====================================================================
event                        the driver sends it when
============================ =====================================================================
Sample(number, x, y)         there is a sample to learn, scaled by `Model`; numbered without gaps
                             from ``Protocol.learned + 1`` on
Received(peer, data)         the transport has received a frame and authenticated its sender
PeerUp(peer), PeerDown(peer) the transport has made or lost a connection
Neighbors(names)             the learner gets other neighbors
Tick()                       time has passed: every 50 ms or so, and soon after a Checkpoint
============================ =====================================================================

============================ =====================================================================
effect                       the driver must
============================ =====================================================================
Send(peer, data)             give the frame to the transport, which may lose it
Predicted(number, y_hat)     report or store the prediction, if it wants to
Forecasted(number, ...)      report the forecast, if it wants to; only where the model has a horizon
Checkpoint(number)           save `Protocol.snapshot` now, or skip this one
Alarm(kind, peer, text)      tell the operator
============================ =====================================================================

Effects must be carried out in order, before the next event is handled. `Protocol.handle` must not
be called by two threads at a time. Whatever bytes a peer sends, it does not raise.

The loop of a driver
--------------------
Three learners in a row; the network between them is a list of frames that have not arrived.

>>> import domkl
>>> from domkl.mesh.protocol.events import Checkpoint, Predicted, Send
>>> from domkl.mesh.protocol.events import PeerUp, Received, Sample, Tick
>>> from domkl.mesh.protocol.model import Model, Range
>>> from domkl.mesh.protocol.protocol import Protocol

All learners have the same model. Each is told its neighbors, and a number that is greater at each
start than at any before (a node uses the time of day, and stores it).

>>> features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 1, 10, seed=1)
>>> model = Model(domkl.DOMKL(), features, (Range("x", 0, 1),), Range("y", 0, 1))
>>> neighbors = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
>>> learners = {
...     name: Protocol(name, model, near, incarnation=1, checkpoint_every=15)
...     for name, near in neighbors.items()
... }
>>> network, disk, errors = [], {}, []

The heart of a driver hands over one event, and carries out the effects:

>>> def tell(name, event, now):
...     for effect in learners[name].handle(event, now):
...         if isinstance(effect, Send):
...             network.append((effect.peer, Received(name, effect.data)))
...         elif isinstance(effect, Predicted):
...             errors.append((effect.y_hat - label(effect.number)) ** 2)
...         elif isinstance(effect, Checkpoint):
...             disk[name] = learners[name].snapshot()
...         else:
...             print(f"{now:.0f} s, {name}: {effect.text}")

Around it is a loop that waits for whatever comes first: a frame, a sample, or the time for a tick.
Here frames arrive at once, and 50 ms pass between two ticks.

>>> def deliver(now):
...     while network:
...         peer, event = network.pop(0)
...         if peer in learners:
...             tell(peer, event, now)
>>> def tick(now):
...     for name in learners:
...         tell(name, Tick(), now)
...     deliver(now)

The transports connect, and the edges open:

>>> for name, near in neighbors.items():
...     for peer in near:
...         tell(name, PeerUp(peer), 0.0)
>>> deliver(0.0)
0 s, a: b is up
0 s, b: a is up
0 s, b: c is up
0 s, c: b is up

Each learner gets forty samples of one function, and they learn it together:

>>> import numpy as np
>>> def position(number):
...     return np.array([number * 0.618 % 1])
>>> def label(number):
...     return 0.5 + 0.4 * np.sin(5 * position(number)[0])
>>> for number in range(1, 41):
...     now = 0.05 * number
...     for name in learners:
...         tell(name, Sample(number, position(number), label(number)), now)
...     deliver(now)
...     tick(now)
>>> [learner.learned for learner in learners.values()]
[40, 40, 40]
>>> bool(np.mean(errors[-15:]) < 0.1 * np.mean(errors[:15]))
True

Learner c crashes. After four seconds of silence b closes the edge, and goes on with a alone:

>>> del learners["c"]
>>> for now in np.arange(2.05, 7.0, 0.05):
...     tick(now)
6 s, b: c was not heard for 4 s

It restarts from its last checkpoint, with a greater incarnation. The driver hands over the samples
since then again; a node keeps them in a write-ahead log.

>>> learners["c"] = Protocol("c", model, neighbors["c"], incarnation=2, snapshot=disk["c"])
>>> learners["c"].learned
30
>>> for number in range(31, 41):
...     tell("c", Sample(number, position(number), label(number)), 7.0)
>>> for now in np.arange(7.0, 9.0, 0.05):
...     tick(now)
7 s, c: b is up
7 s, b: c is up
>>> learners["c"].learned
40

A learner that stops for good says goodbye, and its driver sends the frames of that, too:

>>> for effect in learners["a"].leave():
...     network.append((effect.peer, Received("a", effect.data)))
>>> deliver(9.0)
9 s, b: a left

Where to read on: docs/explanation/mesh-protocol.md has the frames byte by byte and what is
promised under which faults; mesh/testing runs this loop under random faults; mesh/node/node.py is
the driver of a node.
"""
