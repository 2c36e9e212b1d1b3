"""How far a neighbor moves, in units of our own move."""

from types import SimpleNamespace

import numpy as np
import pytest

from domkl.mesh.protocol.edges import Pair
from domkl.mesh.protocol.guard import LONG_MOVE, SHORT_MOVE, Motion


def exchange(own, theirs):
    """Messages of one field, or of two."""
    said = [
        SimpleNamespace(fields={f: np.array([[v]]) for f, v in values.items()})
        for values in (own, theirs)
    ]
    return Pair(*said)


def shares(moves, fields=("a",)):
    """What is found in exchanges 1, 2, ... of an epoch."""
    motion = Motion()
    return [
        motion.share(SimpleNamespace(n_done=k + 1), exchange(*moves(k)), fields) for k in range(60)
    ]


@pytest.mark.parametrize("speed", [0.0, 0.25, 3.0])
def test_a_steady_move_is_found_from_the_first_exchanges_on(speed):
    found = shares(lambda k: ({"a": 7 + 2 * k}, {"a": 1 - 2 * speed * k}))
    assert found[:SHORT_MOVE] == [None] * SHORT_MOVE
    assert found[SHORT_MOVE:] == pytest.approx([speed] * (60 - SHORT_MOVE))


def test_who_stops_is_found_within_the_longest_span():
    found = shares(lambda k: ({"a": k}, {"a": min(k, 20)}))
    assert found[20] == 1
    assert found[20 + LONG_MOVE : 60] == [0.0] * (40 - LONG_MOVE)


def test_nobody_moves_while_we_stand_still():
    assert shares(lambda k: ({"a": 5.0 + 1e-9 * k}, {"a": 3.0})) == [None] * 60


def test_the_field_in_which_they_move_most_counts():
    found = shares(lambda k: ({"a": k, "b": k}, {"a": 0, "b": k / 2}), ("a", "b"))
    assert found[SHORT_MOVE:] == pytest.approx([0.5] * (60 - SHORT_MOVE))


def test_a_new_epoch_begins_anew():
    motion, given = Motion(), ({"a": 0.0}, {"a": 0.0})
    for k in range(1, 30):
        motion.share(SimpleNamespace(n_done=k), exchange({"a": k}, {"a": k}), ("a",))
    assert motion.share(SimpleNamespace(n_done=1), exchange(*given), ("a",)) is None
