"""Samples from a topic, through a real broker on loopback."""

import asyncio
import json

import aiomqtt
import pytest
from amqtt.broker import Broker as Server
from mesh_node import free_ports, made, sample, solo_folder, until

from domkl.errors import ParameterError
from domkl.mesh.node import mqtt
from domkl.mesh.node.mqtt import Broker, from_topic


def test_addresses():
    assert Broker.parse("mqtt://us%40er:p%3Aw@host:99") == ("host", 99, False, "us@er", "p:w")
    for wrong in ("http://host", "mqtt://", "mqtt://host:port"):
        with pytest.raises(ParameterError, match="mqtt must be"):
            Broker.parse(wrong)
    with pytest.raises(ParameterError, match=r"got 'host:99'.*%23 for #") as caught:
        Broker.parse("mqtt://user:sec#ret@host:99")
    assert "ret@" not in str(caught.value)


def server(port):
    return Server({
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    })  # fmt: skip


def test_samples_are_acknowledged_to_the_broker_when_they_are_on_disk(tmp_path, monkeypatch):
    """It finds the broker when that comes up, and a spoiled message does not stop it."""
    monkeypatch.setattr(mqtt, "BACK_OFF", (0.02, 0.1))
    folder, (port,) = solo_folder(tmp_path), free_ports(1)
    payloads = [
        json.dumps({**sample(0), "id": "one"}),
        "spoiled",
        json.dumps([sample(1), sample(2)]),
        json.dumps({**sample(0), "id": "one"}),
        json.dumps(sample(3)),
    ]
    on_disk = []

    async def story():
        node = made(folder)
        await node.start()
        broker = Broker("127.0.0.1", port, False, None, None)
        task = asyncio.create_task(from_topic(node, broker, "load/+"))
        real = mqtt._client

        def watched(*given):
            client = real(*given)
            ack = client._client.ack
            client._client.ack = lambda mid, qos: (
                on_disk.append(node.backlog.log.last) or ack(mid, qos)
            )
            return client

        monkeypatch.setattr(mqtt, "_client", watched)
        await asyncio.sleep(0.05)
        up = server(port)
        await up.start()
        async with aiomqtt.Client("127.0.0.1", port) as client:
            sessions = up._sessions
            await until(lambda: any(name.startswith("domkl-") for name in sessions))
            await until(lambda: up.subscriptions)
            for payload in payloads:
                await client.publish("load/north", payload, qos=1)
            await until(lambda: len(on_disk) == len(payloads))
        await until(lambda: node.is_idle)
        assert on_disk == [1, 1, 3, 3, 4]
        assert node.backlog.position == 4
        assert node.intake.rejected["invalid"] == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await up.shutdown()
        await node.close()

    asyncio.run(story())
