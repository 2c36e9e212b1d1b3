"""Compiled functions, before anybody waits for an answer."""

from collections import deque

import numpy as np

from domkl.mesh.protocol.events import Event, PeerUp, Received, Sample, Send, Tick
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.protocol import Protocol

LATER = 3.0  # seconds, after which a learner without samples follows its neighbors


def warm_up(model: Model) -> None:
    """Have all that a node calls compiled, or read from the cache: two learners, two samples."""
    pair = {name: Protocol(name, model, (peer,), incarnation=1) for name, peer in ("ab", "ba")}
    x = np.full(len(model.inputs), 0.5)
    under_way: deque[tuple[str, Event]] = deque()
    rounds: list[tuple[float, list[Event]]] = [
        (0.0, [Sample(1, x, 0.5)]), (0.1, [Sample(2, x, 0.5)]), (LATER, [Tick()]),
    ]  # fmt: skip
    under_way += [("a", PeerUp("b")), ("b", PeerUp("a"))]
    for now, events in rounds:
        under_way += [(name, each) for each in events for name in pair]
        while under_way:
            name, event = under_way.popleft()
            for effect in pair[name].handle(event, now):
                if isinstance(effect, Send):
                    under_way.append((effect.peer, Received(name, effect.data)))
    pair["a"].predict(x)
    pair["a"].deviation(x)
