"""Configurations of Zenoh for a mesh: traffic follows the graph, access rights go by certificate.

Frames from j to k have the key mesh/j/to/k. From the certificate of j a node accepts frames of j
to itself and subscriptions of j to frames from itself to j, and nothing else.
Zenoh's defaults do not fit: they find peers by multicast and gossip (every node ends up
connected to every other), share memory, wait ten seconds for a lost peer, and may stall for
longer behind a full TLS buffer.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from domkl.mesh.transports.base import Address

LEASE_MS = 2000  # a link without a sign of life for so long is lost
SEND_BUFFER = 1_000_000  # bytes; a larger one delays the report that a link is lost
OPEN_MS = 1000  # a client cannot open without its router for so long; later it reconnects
SLACK = 65_536  # bytes of a message for Zenoh's own headers

Config = dict[str, Any]


def key(source: str, target: str) -> str:
    """The key of frames from one node to another."""
    return f"mesh/{source}/to/{target}"


def peer(
    name: str,
    dialed: Collection[Address],
    neighbors: Collection[str],
    listen: Address | None,
    certificates: Path,
    **limits: float,
) -> Config:
    """A node with a link to each neighbor."""
    rights = {each: _rights(each, [key(each, name)], [key(name, each)]) for each in neighbors}
    return _config("peer", listen, dialed, certificates, rights, **limits)


def client(
    name: str,
    router: Address,
    router_name: str,
    neighbors: Collection[str],
    certificates: Path,
    **limits: float,
) -> Config:
    """A node whose only link is to a router."""
    incoming = [key(each, name) for each in neighbors]
    outgoing = [key(name, each) for each in neighbors]
    rights = {router_name: _rights(router_name, incoming, outgoing)} if neighbors else {}
    config = _config("client", None, [router], certificates, rights, **limits)
    config["connect"] |= {"timeout_ms": OPEN_MS, "exit_on_failure": True}
    return config


def router(
    listen: Address, members: Collection[str], certificates: Path, **limits: float
) -> Config:
    """A relay between clients; each may publish only as itself and receive only its own frames."""
    rights = {each: _rights(each, [key(each, "*")], [key("*", each)]) for each in members}
    return _config("router", listen, [], certificates, rights, **limits)


def _config(
    mode: str,
    listen: Address | None,
    dialed: Collection[Address],
    certificates: Path,
    rights: Mapping[str, list[Config]],
    *,
    wait_before_drop: float,
    max_frame: float,
) -> Config:
    patience = {"wait_before_drop": round(wait_before_drop * 1e6)}
    return {
        "mode": mode,
        "listen": {"endpoints": [f"tls/{listen}"] if listen else []},
        "connect": {
            "endpoints": [f"tls/{each}" for each in dialed],
            "timeout_ms": -1,  # try for ever; 0 would mean once
            "exit_on_failure": False,
            "retry": {"period_init_ms": 100, "period_max_ms": 1000, "period_increase_factor": 2},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {
            "shared_memory": {"enabled": False},
            "link": {
                "tx": {
                    "lease": LEASE_MS,
                    "keep_alive": 4,
                    "queue": {"congestion_control": {"drop": patience}},
                },
                "rx": {"max_message_size": int(max_frame) + SLACK},
                "tls": _tls(certificates),
            },
        },
        "access_control": _access(rights),
    }


def _tls(certificates: Path) -> Config:
    node, node_key = str(certificates / "node.pem"), str(certificates / "node.key")
    return {
        "root_ca_certificate": str(certificates / "ca.pem"),
        "enable_mtls": True,
        "so_sndbuf": SEND_BUFFER,
        "listen_certificate": node,
        "listen_private_key": node_key,
        "connect_certificate": node,
        "connect_private_key": node_key,
    }


def _rights(name: str, incoming: list[str], outgoing: list[str]) -> list[Config]:
    """What the owner of one certificate may publish and receive."""
    allowed = [
        ("says", "ingress", "put", incoming),
        ("hears", "egress", "put", outgoing),
        ("asks", "ingress", "declare_subscriber", outgoing),
        ("is-asked", "egress", "declare_subscriber", incoming),
    ]
    return [
        {"id": f"{name}-{word}", "permission": "allow", "flows": [flow], "messages": [message],
         "key_exprs": keys}
        for word, flow, message, keys in allowed
    ]  # fmt: skip


def _access(rights: Mapping[str, list[Config]]) -> Config:
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": [rule for rules in rights.values() for rule in rules],
        "subjects": [{"id": name, "cert_common_names": [name]} for name in rights],
        "policies": [
            {"rules": [rule["id"] for rule in rules], "subjects": [name]}
            for name, rules in rights.items()
        ],
    }
