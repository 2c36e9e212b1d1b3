"""Samples from a topic, through a real broker on loopback."""

import asyncio
import json
import re

import aiomqtt
import jinja2
import pytest
from mesh_broker import Broker as BrokerProcess
from mesh_node import DEADLINE, free_ports, made, prepared, sample, solo_folder, until
from prometheus_client import generate_latest

from domkl.errors import ParameterError
from domkl.mesh.config.settings import Forecasting
from domkl.mesh.node import mqtt
from domkl.mesh.node.metrics import registry_of
from domkl.mesh.node.mqtt import Broker, MqttConnection, Topic, check_topic, from_topic, sensors_of
from domkl.mesh.node.publish import Publisher


def test_addresses():
    assert Broker.parse("mqtt://us%40er:p%3Aw@host:99") == ("host", 99, False, "us@er", "p:w")
    for wrong in ("http://host", "mqtt://", "mqtt://host:port"):
        with pytest.raises(ParameterError, match="mqtt must be"):
            Broker.parse(wrong)
    with pytest.raises(ParameterError, match=r"got 'host:99'.*%23 for #") as caught:
        Broker.parse("mqtt://user:sec#ret@host:99")
    assert "ret@" not in str(caught.value)


@pytest.mark.parametrize("topic", ["", " ", "a\0b", "a\nb", "x" * 1001, "a+/b", "a/#/b", "#b"])
def test_topics_that_are_none_are_refused(topic):
    for is_filter in (True, False):
        with pytest.raises(ParameterError, match=r"^topic to .{10,150}$"):
            check_topic(topic, is_filter=is_filter)


def test_wildcards_are_for_subscriptions():
    for topic in ("load/+", "load/#", "+/load", "#", "$SYS/load"):
        assert check_topic(topic, is_filter=True) == topic
        with pytest.raises(ParameterError, match=r"must not have \+ or #, nor begin with \$"):
            check_topic(topic)
    assert check_topic("load/north") == "load/north"


#: of a sensor in https://www.home-assistant.io/integrations/sensor.mqtt: those that we use
DOCUMENTED = {"name", "unique_id", "state_topic", "value_template", "json_attributes_topic",
              "availability_topic", "state_class", "device", "origin"}  # fmt: skip
#: the topic of a description, as https://www.home-assistant.io/integrations/mqtt asks for it
DISCOVERY_TOPIC = r"homeassistant/sensor/[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+/config"


def rendered(template, payload):
    """What Home Assistant makes of a message; it uses Jinja, too."""
    return jinja2.Template(template).render(value_json=json.loads(json.dumps(payload)))


@pytest.mark.parametrize(
    "changes", [{}, {"lags": 3}, {"forecast": Forecasting((1, 6), lags=(1, 2)), "inputs": ()}]
)
def test_home_assistant_can_read_the_descriptions(tmp_path, changes):
    """What its documents ask for: there was no Home Assistant to try it with."""

    async def story():
        node = made(solo_folder(tmp_path, **changes))
        found = list(sensors_of(node, "domkl/solo", "homeassistant"))
        await node.close()
        return found

    found = asyncio.run(story())
    texts = [json.loads(text) for _, text in found]
    assert len({topic for topic, _ in found}) == len({each["unique_id"] for each in texts})
    assert len(found) == (2 if "forecast" in changes else 1)
    for (topic, _), sensor in zip(found, texts, strict=True):
        assert re.fullmatch(DISCOVERY_TOPIC, topic)
        assert set(sensor) == DOCUMENTED
        assert sensor["device"]["identifiers"]
        assert sensor["origin"]["name"] == "domkl"
        assert sensor["state_class"] == "measurement"
    if "forecast" in changes:
        both = {"forecasts": [{"horizon": 1, "prediction": 2.5}, {"horizon": 6, "prediction": 7}]}
        assert [rendered(each["value_template"], both) for each in texts] == ["2.5", "7"]
        first = {"forecasts": both["forecasts"][:1]}  # the other could not be made
        assert [rendered(each["value_template"], first) for each in texts] == ["2.5", "None"]
    else:
        assert rendered(texts[0]["value_template"], {"prediction": 1e-3}) == "0.001"


def test_samples_are_acknowledged_to_the_broker_when_they_are_on_disk(tmp_path, monkeypatch):
    """It finds the broker when that comes up and comes back; a spoiled message stops nothing."""
    monkeypatch.setattr(mqtt, "BACK_OFF", (0.02, 0.1))
    folder, (port,) = solo_folder(tmp_path), free_ports(1)
    payloads = [
        json.dumps({**sample(0), "id": "one"}),
        "spoiled",
        json.dumps([sample(1), sample(2)]),
        json.dumps({**sample(0), "id": "one"}),
        json.dumps({"a": 1, "b": 0.5, "load": 3, "battery": "low"}),
    ]
    on_disk, real = [], MqttConnection.acknowledge

    async def story():
        node = made(folder)
        await node.start()

        def acknowledge(connection, message):
            on_disk.append(node.backlog.log.last)
            real(connection, message)

        monkeypatch.setattr(MqttConnection, "acknowledge", acknowledge)
        broker = Broker("127.0.0.1", port, False, None, None)
        task = asyncio.create_task(from_topic(node, broker, "load/+"))
        await until(lambda: node.links == {"mqtt samples": False})
        for n in (1, 2):
            up = await asyncio.to_thread(BrokerProcess, port)
            await until(lambda: node.links["mqtt samples"])
            async with aiomqtt.Client("127.0.0.1", port) as client:
                for payload in payloads:
                    await client.publish("load/north", payload, qos=1)
                await until(lambda n=n: len(on_disk) == n * len(payloads))
            up.kill()
            await until(lambda: not node.links["mqtt samples"])
        await until(lambda: node.is_idle)
        assert on_disk == [1, 1, 3, 3, 4, 4, 4, 6, 6, 7]
        assert node.backlog.position == 7
        assert node.intake.rejected["invalid"] == 2
        kinds = [each.kind for each in node.recorder.events if each.kind.startswith("link")]
        assert kinds == ["link lost", "link up", "link lost", "link up", "link lost"]
        text = generate_latest(registry_of(node)).decode()
        assert 'domkl_link_up{link="mqtt samples"} 0.0' in text
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await node.close()

    asyncio.run(asyncio.wait_for(story(), 4 * DEADLINE))


def test_predictions_and_their_description_are_published(tmp_path):
    folder, (port,) = solo_folder(tmp_path), free_ports(1)
    seen = []

    async def story():
        node = made(folder)
        broker = Broker("127.0.0.1", port, False, None, None)
        publisher = Publisher(node, Topic(node, broker, "domkl/solo", "homeassistant"))
        await node.start()
        async with aiomqtt.Client("127.0.0.1", port) as client:
            await client.subscribe("#", qos=1)

            async def listen():
                async for message in client.messages:
                    seen.append((str(message.topic), message.payload.decode()))

            listener = asyncio.create_task(listen())
            task = asyncio.create_task(publisher.run())
            await until(lambda: node.links.get("mqtt predictions"))
            await node.intake.accept(prepared(node, range(3)))
            await until(lambda: len(seen) == 5)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await until(lambda: len(seen) == 6)
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
        publisher.close()
        await node.close()

    with BrokerProcess(port):
        asyncio.run(asyncio.wait_for(story(), 4 * DEADLINE))
    assert seen[0] == ("domkl/solo/status", "online")
    assert seen[5] == ("domkl/solo/status", "offline")
    assert seen[1][0] == "homeassistant/sensor/domkl_mesh_solo/h0/config"
    sensor = json.loads(seen[1][1])
    assert sensor["state_topic"] == sensor["json_attributes_topic"] == "domkl/solo"
    assert sensor["availability_topic"] == "domkl/solo/status"
    assert sensor["value_template"] == "{{ value_json.prediction }}"
    said = [json.loads(text) for topic, text in seen[2:5]]
    assert [each["number"] for each in said] == [1, 2, 3]
    assert len({each["id"] for each in said}) == 3
    assert all(isinstance(each["prediction"], float) for each in said)
