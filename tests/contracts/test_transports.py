"""What every transport promises, and how it bears faults."""

import asyncio

import pytest
from mesh_nets import NETS, story, wait_for

from domkl.errors import ParameterError

FRAME = bytes(14_000)


@pytest.fixture(scope="session")
def mesh_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mesh")


@pytest.fixture(params=sorted(NETS))
def net(request, mesh_folder):
    return NETS[request.param](mesh_folder)


async def pair(net, **options):
    a = await net.start("a", ["b"], **options)
    b = await net.start("b", ["a"], **options)
    await wait_for(lambda: a.up and b.up)
    return a, b


async def exchange(a, b):
    """A fresh frame each way."""
    for source, target in ((a, b), (b, a)):
        number = len(target.frames).to_bytes(4, "big")
        assert source.send(target.name, number)
        await wait_for(lambda t=target, s=source, n=number: t.heard(s.name)[-1:] == [n])


@story
async def test_frames_go_both_ways_and_are_counted(net):
    a, b = await pair(net)
    await exchange(a, b)
    assert a.send("b", FRAME)
    await wait_for(lambda: b.heard("a")[-1] == FRAME)
    sent, received = a.transport.traffic()["b"], b.transport.traffic()["a"]
    assert (sent.sent, sent.sent_bytes, sent.received, sent.dropped) == (2, 14_004, 1, 0)
    assert (received.received, received.received_bytes, received.sent) == (2, 14_004, 1)


@story
async def test_frames_arrive_whole_from_nothing_to_the_limit(net):
    a, b = await pair(net, max_frame=300_000)
    for size in (0, 1, 5, 65_531, 65_532, 65_533, 300_000, 0, 7):
        frame = bytes(range(256)) * (size // 256 + 1)
        assert a.send("b", frame[:size])
        await wait_for(lambda: b.frames)
        assert b.frames.pop() == ("a", frame[:size])


@story
async def test_order_is_kept(net):
    a, b = await pair(net)
    for number in range(400):
        assert a.send("b", number.to_bytes(4, "big") * (1 + 997 * number % 400))
        if number % 20 == 19:
            await wait_for(lambda n=number: len(b.frames) == n + 1)
    assert [int.from_bytes(frame[:4], "big") for _, frame in b.frames] == list(range(400))


@story
async def test_a_node_that_is_not_listed_is_refused(net):
    a, b = await pair(net)
    for name in ("0", "c"):  # one that dials, one that is dialed
        stranger = await net.start(name, ["a"])
        await net.addresses("a", [name])
        if name == "0":
            await wait_for(lambda: any(who == "0" for who, _ in a.refused))
        assert not stranger.send("a", FRAME)
    await exchange(a, b)
    assert {name for name, _ in a.frames} == {"b"}
    assert a.up == {"b"}


@story
async def test_a_node_with_the_certificate_of_another_is_refused(net):
    b = await net.start("b", ["a"])
    impostor = await net.start("a", ["b"], identity="mallory")
    await wait_for(lambda: b.refused)
    assert b.refused[0][0] == "mallory"
    assert not impostor.send("b", FRAME)
    await impostor.transport.stop()
    a = await net.start("a", ["b"])
    await wait_for(lambda: a.up and b.up)
    await exchange(a, b)
    assert len(b.frames) == 1


@story
async def test_a_listed_neighbor_may_not_speak_for_another(net):
    b = await net.start("b", ["a", "0"])
    honest = await net.start("0", ["b"])
    await wait_for(lambda: b.up == {"0"} and honest.up)
    impostor = await net.start("a", ["b"], identity="0")
    await wait_for(lambda: net.has_tried(b, "0"))
    impostor.send("b", FRAME)
    await impostor.transport.stop()
    await wait_for(lambda: honest.up == {"b"} and "0" in b.up)
    assert "a" not in b.up
    assert b.heard("a") == []


@story
async def test_a_peer_that_starts_again_is_found_again(net):
    a, b = await pair(net)
    for _ in range(2):
        await exchange(a, b)
        await b.transport.stop()
        await wait_for(lambda: not a.up)
        assert not a.send("b", FRAME)
        b = await net.start("b", ["a"])
        await wait_for(lambda b=b: a.up and b.up)
    await exchange(a, b)
    assert [is_up for _, is_up, _ in a.peers] == [True, False, True, False, True]
    await a.transport.stop()
    await wait_for(lambda: not b.up)
    a = await net.start("a", ["b"])
    await wait_for(lambda: a.up and b.up)
    await exchange(a, b)


@story
async def test_a_cut_is_noticed_and_heals(net):
    a, b = await pair(net)
    net.edge("a", "b").cut()
    await wait_for(lambda: not a.up and not b.up)
    net.edge("a", "b").heal()
    await wait_for(lambda: a.up and b.up)
    await exchange(a, b)


@story
async def test_neighbors_come_and_go_while_it_runs(net):
    a, b = await pair(net)
    c = await net.start("c", ["a"])
    await a.transport.set_neighbors(await net.addresses("a", ["b", "c"]))
    await wait_for(lambda: a.up == {"b", "c"} and b.up and c.up)
    await exchange(a, c)
    await a.transport.set_neighbors(await net.addresses("a", ["c"]))
    await wait_for(lambda: a.up == {"c"} and not b.up)
    assert not a.send("b", FRAME)
    assert not b.send("a", FRAME)
    await exchange(a, c)
    assert len(a.heard("b")) == 0
    assert set(a.transport.traffic()) == {"c"}


@story
async def test_a_slow_neighbor_delays_nobody_and_costs_bounded_memory(net):
    a = await net.start("a", ["b", "c"])
    b = await net.start("b", ["a"])
    c = await net.start("c", ["a"])
    await wait_for(lambda: a.up == {"b", "c"} and b.up and c.up)
    net.edge("a", "b").hold()
    sent = 0
    while a.send("b", bytes(200_000)):
        sent += 1
        assert sent < 200, "40 MB and no end"
        assert a.send("c", sent.to_bytes(4, "big"))
        await wait_for(lambda: len(c.frames) == sent)  # noqa: B023
    assert [is_up for name, is_up, _ in a.peers if name == "b"] == [True]
    assert a.transport.traffic()["b"].dropped == 1
    net.edge("a", "b").release()
    await wait_for(lambda: a.send("b", b"again") and b.heard("a")[-1:] == [b"again"])


@story
async def test_sending_to_nobody_is_no_error(net):
    a = await net.start("a", ["b"])
    assert not a.send("b", FRAME)
    assert not a.send("nobody", FRAME)
    assert a.transport.traffic()["b"].dropped == 1


@story
async def test_a_stopped_node_is_silent(net):
    a, b = await pair(net)
    await a.transport.stop()
    peers = list(a.peers)
    await a.transport.stop()
    assert not a.send("b", FRAME)
    await wait_for(lambda: not b.up)
    assert a.peers == peers


@story
async def test_to_stop_waits_for_no_neighbor(net):
    a, b = await pair(net)
    net.edge("a", "b").hold()
    await wait_for(lambda: not a.send("b", bytes(10**6)))
    stopping = asyncio.create_task(a.transport.stop())
    await wait_for(stopping.done)
    net.edge("a", "b").release()
    await wait_for(lambda: not b.up)


@story
async def test_a_callback_that_fails_stops_nothing(net):
    a, b = await pair(net)
    fault = ValueError("of the host")
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: told.append(fault))
    b.transport._on_frame = lambda name, frame: b._on_frame(name, frame) if frame else fail(fault)
    assert a.send("b", b"")
    assert a.send("b", b"next")
    await wait_for(lambda: b.heard("a") == [b"next"])
    assert [each["exception"] for each in told] == [fault]


def fail(fault):
    raise fault


@story
async def test_what_was_sent_before_stop_arrives(net):
    a, b = await pair(net)
    for _ in range(4):
        assert a.send("b", FRAME)
    await asyncio.gather(a.transport.stop(), wait_for(lambda: len(b.frames) == 4))


@story
async def test_a_frame_beyond_the_limit_is_refused_at_both_ends(net):
    a = await net.start("a", ["b"], max_frame=2000)
    b = await net.start("b", ["a"], max_frame=1000)
    await wait_for(lambda: a.up and b.up)
    with pytest.raises(ParameterError, match="at most 1000 bytes, got 1001"):
        b.send("a", bytes(1001))
    assert a.send("b", bytes(1001))
    await wait_for(lambda: b.refused)
    assert b.refused[0][0] == "a"
    assert "1001" in b.refused[0][1]
    await wait_for(lambda: a.up and b.up)
    await wait_for(lambda: a.send("b", bytes(1000)) and b.frames)
    assert {len(frame) for _, frame in b.frames} == {1000}


@story
async def test_a_transport_starts_once(net):
    a = await net.start("a", ["b"])
    with pytest.raises(RuntimeError, match="started already"):
        await a.start()


@story
async def test_names_are_checked(net):
    for names in (["a"], ["B"], ["../b"], [""], ["b\n"]):
        with pytest.raises(ParameterError):
            await net.start("a", names)
