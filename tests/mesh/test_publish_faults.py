"""A node and its broker, both killed again and again: nothing is lost, nothing is said twice."""

import asyncio
import json
import subprocess

import aiomqtt
import pytest
from mesh_broker import Broker
from mesh_node import DEADLINE, Process, free_ports, sample, solo_folder, until


async def exchange(port, client, numbers, seen):
    """Listen, and send samples with ids until the node has each of them."""
    async with aiomqtt.Client("127.0.0.1", port, timeout=DEADLINE) as mqtt:
        await mqtt.subscribe("out", qos=1)

        async def listen():
            async for message in mqtt.messages:
                seen.append(json.loads(message.payload))

        listener = asyncio.create_task(listen())
        state = await asyncio.to_thread(client.state)
        while not all(state["links"].values()) or len(state["links"]) < 2:
            state = await asyncio.to_thread(client.state)
        for k in numbers:
            text = json.dumps({**sample(k), "id": f"s{k}"})
            await mqtt.publish("in", text, qos=1)
        n = numbers[-1] + 1
        await asyncio.to_thread(client.wait_learned, n)
        await until(lambda: any(each["number"] == n for each in seen))
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)


@pytest.mark.slow
def test_broker_and_node_are_killed_and_nothing_is_published_twice(tmp_path):
    folder, (port,) = solo_folder(tmp_path, checkpoint_every=5), free_ports(1)
    options = ["--mqtt", f"mqtt://127.0.0.1:{port}", "--topic", "in", "--publish", "out"]
    seen, size = [], 20
    broker, node = Broker(port), Process(folder, *options)
    try:
        for k in range(4):
            client = node.client()
            numbers = range(k * size, (k + 1) * size)
            asyncio.run(exchange(port, client, numbers, seen))
            assert client.state()["n_accepted"] == (k + 1) * size
            if k % 2:
                node.kill()
                node.__exit__()
                node = Process(folder, *options)
            else:
                broker.kill()
                node.wait_event("alarm")
                broker = Broker(port)
        state = node.client().wait_learned(4 * size)
        assert state["n_accepted"] == 4 * size
        assert state["n_lost"] == 0
    finally:
        node.__exit__()
        broker.kill()
    ids = [each["id"] for each in seen]
    assert len(ids) == len(set(ids))
    assert {each["number"] for each in seen} == set(range(1, 4 * size + 1))


@pytest.mark.slow
def test_a_node_is_a_filter_of_json_lines(tmp_path):
    """Killed in the middle and started again, it goes on where it was, and says nothing twice."""
    folder, said = solo_folder(tmp_path), []
    for part in (range(10), range(10, 20)):
        text = "".join(json.dumps({**sample(k), "id": f"s{k}"}) + "\n" for k in part)
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with Process(folder, "--stdin", "--publish", "-", **options) as node:
            node.process.stdin.write(text)
            node.process.stdin.flush()
            said += [json.loads(node.process.stdout.readline()) for _ in part]
            node.kill()
            rest = node.process.stdout.read()
            node.process.stdout.close()
            assert rest == ""
    assert [each["number"] for each in said] == list(range(1, 21))
    assert len({each["id"] for each in said}) == 20
