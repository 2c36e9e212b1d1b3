import pytest
from mesh_nets import MemoryNet, story, wait_for

from domkl.errors import ParameterError
from domkl.mesh.transports.memory import MemoryHub


@pytest.fixture
def net():
    return MemoryNet(None)


@story
async def test_an_edge_holds_so_many_frames_and_no_more(net):
    net.hub = MemoryHub(capacity=3)
    a = await net.start("a", ["b"])
    b = await net.start("b", ["a"])
    await wait_for(lambda: a.up and b.up)
    net.hub.hold("a", "b")
    assert [a.send("b", bytes([i])) for i in range(5)] == [True] * 3 + [False] * 2
    assert net.hub.waiting("a", "b") == 3
    assert b.send("a", b"the other way is free")
    await wait_for(lambda: a.frames)
    assert b.frames == []
    net.hub.release("a", "b")
    await wait_for(lambda: len(b.frames) == 3)
    assert a.transport.traffic()["b"].dropped == 2


@story
async def test_the_network_loses_what_it_is_told_to_lose(net):
    net.hub = MemoryHub(is_lost=lambda source, target, frame: frame == b"1")
    a = await net.start("a", ["b"])
    b = await net.start("b", ["a"])
    await wait_for(lambda: a.up and b.up)
    assert all(a.send("b", frame) for frame in (b"0", b"1", b"2"))
    await wait_for(lambda: len(b.frames) == 2)
    assert b.heard("a") == [b"0", b"2"]


@story
async def test_a_cut_loses_what_was_under_way(net):
    a = await net.start("a", ["b"])
    b = await net.start("b", ["a"])
    await wait_for(lambda: a.up and b.up)
    net.hub.hold("a", "b")
    a.send("b", b"lost")
    net.hub.cut("a", "b")
    net.hub.release("a", "b")
    net.hub.hold("a", "b")
    await wait_for(lambda: not a.up)
    net.hub.release("a", "b")
    net.hub.heal("a", "b")
    await wait_for(lambda: a.up)
    a.send("b", b"new")
    await wait_for(lambda: b.frames)
    assert b.heard("a") == [b"new"]


@story
async def test_a_newer_node_of_the_same_name_replaces_the_older(net):
    a = await net.start("a", ["b"])
    b = await net.start("b", ["a"])
    await wait_for(lambda: a.up and b.up)
    newer = await net.start("b", ["a"])
    await wait_for(lambda: newer.up)
    assert [is_up for _, is_up, _ in a.peers] == [True, False, True]
    a.send("b", b"to whom?")
    await wait_for(lambda: newer.frames)
    assert b.frames == []


@story
async def test_an_edge_needs_room(net):
    with pytest.raises(ParameterError, match="capacity"):
        MemoryHub(capacity=0)
