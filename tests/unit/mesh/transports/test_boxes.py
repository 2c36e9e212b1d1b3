import asyncio
import threading

from domkl.mesh.transports.boxes import Inbox, Outbox


def test_what_comes_from_threads_is_handled_in_the_loop_in_order_and_bounded():
    async def main():
        inbox = Inbox(asyncio.get_running_loop(), max_bytes=3)
        got = []

        def handle(name, value):
            got.append((threading.get_ident(), name, value))

        def speak():
            for number in range(5):
                inbox.put(handle, "frame", number, size=1)
            inbox.put(handle, "news", 5)

        await asyncio.to_thread(speak)
        await asyncio.sleep(0)
        here = threading.get_ident()
        # the loop may have run between two frames, then more than three got in
        values = [value for _, _, value in got]
        assert values == sorted(values)
        assert values[-1] == 5
        assert {ident for ident, _, _ in got} == {here}
        return inbox, handle, got

    inbox, handle, got = asyncio.run(main())
    inbox.put(handle, "after the loop", 6)
    assert got[-1][2] == 5


def test_frames_beyond_the_bound_are_dropped_while_the_loop_is_busy():
    async def main():
        inbox, got = Inbox(asyncio.get_running_loop(), max_bytes=3), []
        for number in range(5):
            inbox.put(lambda _, value: got.append(value), "frame", number, size=1)
        inbox.put(lambda _, value: got.append(value), "news", 5)
        await asyncio.sleep(0)
        inbox.put(lambda _, value: got.append(value), "frame", 6, size=3)
        await asyncio.sleep(0)
        inbox.put(lambda _, value: got.append(value), "frame", 7, size=1)
        inbox.close()
        await asyncio.sleep(0)
        return got

    assert asyncio.run(main()) == [0, 1, 2, 5, 6]


def test_a_call_that_blocks_fills_a_bounded_box_and_nobody_waits():
    gate, got = threading.Event(), []

    def call(frame):
        gate.wait(10)
        got.append(frame)

    box = Outbox(call, "test")
    taken = 0
    while box.put(bytes(10_000)):
        taken += 1
        assert taken < 20
    gate.set()
    box.close()
    assert not box.put(b"late")
    box.join(10)
    assert len(got) == taken


def test_a_call_that_fails_does_not_end_the_thread():
    got = []

    def call(frame):
        got.append(frame)
        raise OSError("closed")

    box = Outbox(call, "test")
    assert box.put(b"1")
    assert box.put(b"2")
    box.close()
    box.join(10)
    assert got == [b"1", b"2"]
