"""Samples from an MQTT topic, and predictions to one; needs the extra ``mqtt``.

A message is acknowledged to the broker when its samples are on disk. What a node had not accepted
when it was killed is delivered again, because its client id stays the same. Samples should have an
``id``, so that a sample whose acknowledgement got lost is learned only once.

paho runs a thread for each connection. Its callbacks do nothing but hand over to the event loop,
except that a message waits there while the node has too many unread ones.
"""

import asyncio
import contextlib
import json
import reprlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

import domkl
from domkl.errors import ParameterError
from domkl.mesh.node import registry
from domkl.mesh.node.node import Node
from domkl.mesh.node.publish import (
    BACK_OFF,
    LostError,
    Outcome,
    Outlet,
    Prediction,
    read_url,
    without_login,
)
from domkl.mesh.node.sources import accept, checked

UNREAD = 1000  # messages held at most; the broker keeps the rest
KEEP_ALIVE = 15  # seconds without a word, after which the broker is asked whether it is there
ANSWER = 10.0  # seconds for the answer to a connection or a subscription
CONFIRMED = 30.0  # seconds for that to a prediction
MAX_TOPIC = 1000  # bytes; the standard allows 65535
SAMPLES = "mqtt samples"  # the name of this link in metrics and alarms


class Broker(NamedTuple):
    """Address and login of an MQTT broker."""

    host: str
    port: int
    is_tls: bool
    username: str | None
    password: str | None

    @classmethod
    def parse(cls, url: str) -> "Broker":
        """Read ``mqtt://user:password@host:port`` or ``mqtts://``.

        Examples
        --------
        >>> Broker.parse("mqtts://broker.example")[:3]
        ('broker.example', 8883, True)
        """
        found = read_url(url, {"mqtt": 1883, "mqtts": 8883})
        if found is None:
            raise ParameterError(
                f"mqtt must be mqtt://host:port or mqtts://host:port, got {without_login(url)!r};"
                " in a user or password write %23 for #, %2F for / and %40 for @"
            )
        parts, host, port = found
        login = (
            None if each is None else unquote(each) for each in (parts.username, parts.password)
        )
        return cls(host, port, parts.scheme == "mqtts", *login)


def check_topic(topic: str, *, is_filter: bool = False) -> str:
    """The topic, if one can publish to it, or subscribe to it where it is a filter.

    Examples
    --------
    >>> check_topic("home/+/load", is_filter=True)
    'home/+/load'
    """
    levels = topic.split("/")
    what = "topic to subscribe to" if is_filter else "topic to publish to"
    problem = None
    if not topic.strip() or not topic.isprintable() or len(topic.encode()) > MAX_TOPIC:
        problem = f"must be printable text of at most {MAX_TOPIC} bytes"
    elif not is_filter and (set("+#") & set(topic) or topic.startswith("$")):
        problem = "must not have + or #, nor begin with $"
    elif any(set("+#") & set(each) and len(each) > 1 for each in levels) or "#" in levels[:-1]:
        problem = "must have + as a whole level, and # as the last one"
    if problem is not None:
        raise ParameterError(f"{what} {problem}, got {reprlib.repr(topic)}")
    return topic


class Message(NamedTuple):
    """A message that has come; it must be acknowledged by its number."""

    topic: str
    payload: bytes
    number: int
    qos: int


class Will(NamedTuple):
    """What the broker is to publish when the connection is lost; it is retained."""

    topic: str
    payload: str


class MqttConnection:
    """A connection to a broker until it is lost; whoever wants to go on makes another one.

    Therefore nothing is ever sent again by itself, as clients that reconnect do.

    Parameters
    ----------
    broker : Broker
    identifier : str
        The client's, by which a broker knows it again.
    keeps_session : bool
        Whether the broker is to keep messages while the client is away.
    will : Will, optional

    Attributes
    ----------
    lost : Future
        Has the reason when the connection is lost.
    """

    def __init__(
        self, broker: Broker, identifier: str, *, keeps_session: bool, will: Will | None = None
    ) -> None:
        self.broker = broker
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self._answers: dict[object, asyncio.Future[Any]] = {}
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._room, self._is_closed = threading.Semaphore(UNREAD), threading.Event()
        self._client = client = paho.Client(
            CallbackAPIVersion.VERSION2,
            identifier,
            clean_session=not keeps_session,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        if broker.username is not None:
            client.username_pw_set(broker.username, broker.password)
        if broker.is_tls:
            client.tls_set_context(ssl.create_default_context())
        if will is not None:
            client.will_set(will.topic, will.payload, qos=1, retain=True)
        client.on_connect = lambda c, u, f, code, p: self._tell(self._answer, "connect", code)
        client.on_subscribe = lambda c, u, mid, codes, p: self._tell(self._answer, mid, codes[0])
        client.on_publish = lambda c, u, mid, code, p: self._tell(self._answer, mid, code)
        client.on_disconnect = lambda c, u, f, code, p: self._tell(self._lose, str(code))
        client.on_message = lambda c, u, message: self._take(message)
        client.on_socket_open = lambda c, u, made: _send_at_once(made)

    async def open(self) -> None:
        """Connect; LostError if that is impossible."""
        answer = self._await("connect")
        try:
            await asyncio.to_thread(
                self._client.connect, self.broker.host, self.broker.port, KEEP_ALIVE
            )
        except (OSError, ValueError) as error:  # ValueError: a host that is none
            raise LostError(str(error)) from None
        self._client.loop_start()
        code = await self._answered(answer)
        if code.is_failure:
            raise LostError(f"the broker refuses: {code}")

    async def subscribe(self, topic: str) -> None:
        """Ask for the messages of a topic; LostError if the broker refuses."""
        code, mid = self._client.subscribe(topic, qos=1)
        if code != paho.MQTT_ERR_SUCCESS or mid is None:
            raise LostError(paho.error_string(code))
        granted = await self._answered(self._await(mid))
        if granted.is_failure:
            raise LostError(f"the broker refuses the topic {topic}: {granted}")

    async def publish(self, topic: str, text: str, *, retain: bool = False) -> Outcome:
        """Publish a text, and wait until the broker has it."""
        if self.lost.done():
            return "not sent"
        sent = self._client.publish(topic, text.encode(), qos=1, retain=retain)
        if sent.rc != paho.MQTT_ERR_SUCCESS:  # this client is never connected again
            return "unsure"
        try:
            await self._answered(self._await(sent.mid), CONFIRMED)
        except LostError:
            return "unsure"
        return "sent"

    async def messages(self) -> AsyncIterator[Message]:
        """All messages that come, until LostError."""
        while True:
            coming = asyncio.ensure_future(self._messages.get())
            either: set[asyncio.Future[Any]] = {coming, self.lost}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                is_new = coming.done() or not coming.cancel()
            if not is_new:
                raise LostError(self.lost.result())
            self._room.release()
            yield coming.result()

    def acknowledge(self, message: Message) -> None:
        """Tell the broker that it need not keep this message any more."""
        self._client.ack(message.number, message.qos)

    async def close(self) -> None:
        """Leave the broker, and end the thread."""
        self._is_closed.set()
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    def _tell(self, function: Callable[..., None], *given: Any) -> None:
        """From paho's thread: have a function called in the loop's."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function, *given)

    def _take(self, message: paho.MQTTMessage) -> None:
        while not self._room.acquire(timeout=0.1):
            if self._is_closed.is_set():
                return
        payload = bytes(message.payload)
        made = Message(message.topic, payload, message.mid, message.qos)
        self._tell(self._messages.put_nowait, made)

    def _await(self, key: object) -> "asyncio.Future[Any]":
        answer = self._answers[key] = self._loop.create_future()
        return answer

    async def _answered(self, answer: "asyncio.Future[Any]", seconds: float = ANSWER) -> Any:
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            raise LostError(f"the broker has not answered within {seconds:.0f} s") from None

    def _answer(self, key: object, found: Any) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None and not answer.done():
            answer.set_result(found)

    def _lose(self, why: str) -> None:
        if not self.lost.done():
            self.lost.set_result(why)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(LostError(why))
                answer.exception()  # whoever waits gets it; nobody else need
        self._answers.clear()


def _send_at_once(made: Any) -> None:
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def identifier(node: Node) -> str:
    """The name by which a broker knows a learner."""
    return f"domkl-{node.folder.config.name}-{node.folder.name}"


def samples_of(options: registry.Subscription) -> "registry.Source":
    """A topic as a source."""
    broker, topic = Broker.parse(options.mqtt), check_topic(options.topic or "", is_filter=True)
    return lambda node: partial(from_topic, node, broker, topic)


def predictions_to(options: registry.Publication) -> "registry.MakeOutlet":
    """A topic as an outlet."""
    broker, topic = Broker.parse(options.mqtt), check_topic(options.publish or "")
    prefix = check_topic(options.discovery) if options.discovery else ""
    return lambda node: Topic(node, broker, topic, prefix)


async def from_topic(node: Node, broker: Broker, topic: str) -> None:
    """Take samples, as of POST /learn; connect again whenever the connection is lost."""
    wait = BACK_OFF[0]
    while True:
        connection = MqttConnection(broker, identifier(node), keeps_session=True)
        try:
            await connection.open()
            await connection.subscribe(topic)
            node.note_link(SAMPLES, True, f"{broker.host}: samples of {topic}")
            wait = BACK_OFF[0]
            await _take(node, connection)
        except LostError as error:
            node.note_link(SAMPLES, False, f"{broker.host}: {error}; trying again")
        finally:
            await connection.close()
        await asyncio.sleep(wait)
        wait = min(2 * wait, BACK_OFF[1])


async def _take(node: Node, connection: MqttConnection) -> None:
    async for message in connection.messages():
        topic = reprlib.repr(message.topic)
        await accept(node, checked(node, message.payload, "bad message", topic=topic))
        connection.acknowledge(message)


class Topic(Outlet):
    """Publishes predictions to a topic, and tells Home Assistant what they are.

    ``TOPIC/status`` is ``online``, or ``offline`` when the broker has lost the node.

    Parameters
    ----------
    node : Node
    broker : Broker
    topic : str
    discovery : str
        Prefix of the topics where Home Assistant looks for devices; empty for none.
    """

    kind = "mqtt predictions"

    def __init__(self, node: Node, broker: Broker, topic: str, discovery: str = "") -> None:
        self.where = f"{broker.host}: predictions to {topic}"
        self._node, self._broker = node, broker
        self._topic, self._discovery = topic, discovery
        self._connection: MqttConnection | None = None

    async def open(self) -> None:
        """Connect, and say what will come."""
        status = f"{self._topic}/status"
        will = Will(status, "offline")
        name = f"{identifier(self._node)}-out"
        self._connection = made = MqttConnection(self._broker, name, keeps_session=False, will=will)
        await made.open()
        said = [(status, "online")]
        if self._discovery:
            said += sensors_of(self._node, self._topic, self._discovery)
        for topic, text in said:
            if await made.publish(topic, text, retain=True) != "sent":
                raise LostError(f"{topic} could not be published")

    async def send(self, items: Sequence[Prediction]) -> list[Outcome]:
        """Publish predictions in order, and wait until the broker has all of them."""
        assert self._connection is not None
        made = (self._connection.publish(self._topic, each.text) for each in items)
        return list(await asyncio.gather(*made))

    async def wait_lost(self) -> None:
        """Raise LostError when the broker is lost."""
        assert self._connection is not None
        raise LostError(await asyncio.shield(self._connection.lost))

    async def close(self) -> None:
        """Say that no more will come, and leave the broker."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if not connection.lost.done():
                with contextlib.suppress(TimeoutError):
                    said = connection.publish(f"{self._topic}/status", "offline", retain=True)
                    await asyncio.wait_for(said, 1.0)
            await connection.close()


def sensors_of(node: Node, topic: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Topics and texts of Home Assistant's discovery: a sensor for each horizon.

    A forecast that could not be made is None there, which Home Assistant shows as unknown.
    """
    config, learner = node.folder.config, node.folder.name
    device, version = f"domkl_{config.name}_{learner}", domkl.__version__
    for model in node.models:
        h, target = model.horizon, model.target.name
        made = f"value_json.forecasts | selectattr('horizon', 'eq', {h})"
        value = f"{made} | map(attribute='prediction') | first | default(none)"
        text = {
            "name": f"{target} in {h} x {config.forecast.step}" if h and config.forecast
            else f"{target} predicted",
            "unique_id": f"{device}_{h}",
            "state_topic": topic,
            "value_template": f"{{{{ {value if h else 'value_json.prediction'} }}}}",
            "json_attributes_topic": topic,
            "availability_topic": f"{topic}/status",
            "state_class": "measurement",
            "device": {"identifiers": [device], "name": f"{config.name} {learner}",
                       "manufacturer": "domkl", "sw_version": version},
            "origin": {"name": "domkl", "sw_version": version},
        }  # fmt: skip
        yield f"{prefix}/sensor/{device}/h{h}/config", json.dumps(text)
