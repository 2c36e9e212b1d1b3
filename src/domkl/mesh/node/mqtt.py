"""Samples from an MQTT topic; needs the extra ``mqtt``.

A message is acknowledged to the broker when its samples are on disk. What a node had not accepted
when it was killed is delivered again, because its client id stays the same. Samples should have an
``id``, so that a sample whose acknowledgement got lost is learned only once.
"""

import asyncio
import logging
import socket
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import aiomqtt

from domkl.errors import ParameterError
from domkl.mesh.node.log import event
from domkl.mesh.node.node import Node
from domkl.mesh.node.sources import accept, checked

BACK_OFF = (0.5, 30.0)  # seconds before connecting again: at first, at most
UNREAD = 1000  # messages held at most; the broker keeps the rest


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
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
            shown = url.rpartition("@")[2]  # the part before may be a password
            raise ParameterError(
                f"mqtt must be mqtt://host:port or mqtts://host:port, got {shown!r};"
                " in a user or password write %23 for #, %2F for / and %40 for @"
            )
        is_tls = parts.scheme == "mqtts"
        name = None if parts.username is None else unquote(parts.username)
        password = None if parts.password is None else unquote(parts.password)
        return cls(parts.hostname, port or (8883 if is_tls else 1883), is_tls, name, password)


async def from_topic(node: Node, broker: Broker, topic: str) -> None:
    """Take samples, as of POST /learn; connect again whenever the connection is lost."""
    wait = BACK_OFF[0]
    while True:
        try:
            async with _client(node, broker) as client:
                await client.subscribe(topic, qos=1)
                event("mqtt", broker=broker.host, topic=topic, up=True)
                wait = BACK_OFF[0]
                await _take(node, client)
        except aiomqtt.MqttError as error:
            event("mqtt", logging.WARNING, broker=broker.host, up=False, why=str(error))
        await asyncio.sleep(wait)
        wait = min(2 * wait, BACK_OFF[1])


def _client(node: Node, broker: Broker) -> aiomqtt.Client:
    client = aiomqtt.Client(
        broker.host,
        broker.port,
        username=broker.username,
        password=broker.password,
        identifier=f"domkl-{node.folder.config.name}-{node.folder.name}",
        clean_session=False,
        tls_params=aiomqtt.TLSParameters() if broker.is_tls else None,
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        max_queued_incoming_messages=UNREAD,
    )
    client._client.manual_ack_set(True)  # aiomqtt has no public name for this
    return client


async def _take(node: Node, client: aiomqtt.Client) -> None:
    async for message in client.messages:
        payload = message.payload if isinstance(message.payload, bytes) else b""
        await accept(node, checked(node, payload, "bad message", topic=str(message.topic)))
        client._client.ack(message.mid, message.qos)
