"""What a node reports about itself: one JSON object, `/state`."""

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import domkl
from domkl.algorithms.registry import name_of
from domkl.mesh.node.node import Node
from domkl.mesh.operate.verdict import verdict_of
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.store.history_json import windows_of
from domkl.storage import Parts

MEANS = ("mse", "mse_alone", "mse_last_value", "neighbor_gap")


def state_of(node: Node, with_digest: bool = False) -> dict[str, Any]:
    """All measures, the agreed model, and the neighbors."""
    config, backlog, protocol = node.folder.config, node.backlog, node.protocol
    model = node.format.model
    state: dict[str, Any] = {
        "version": domkl.__version__,
        "pid": os.getpid(),
        "mesh": config.name,
        "learner": node.folder.name,
        "is_ready": node.is_ready,
        "algorithm": name_of(config.algorithm),
        "mode": config.mode,
        "fingerprint": model.fingerprint.hex(),
        "inputs": [each.name for each in model.inputs],
        "target": model.target.name,
        "lags": config.lags,
        "outside": config.outside,
        "n_accepted": backlog.log.last,
        "n_queued": backlog.n_waiting,
        "n_repeated": node.intake.n_repeated,
        "n_outside": backlog.n_outside,
        "n_lost": backlog.n_lost,
        "rejected": dict(node.intake.rejected),
        "strangers": dict(node.refused),
        "links": dict(node.links),
        "published": {name: dict(counts) for name, counts in node.published.items()},
        "checkpoint": node.saver.position,
        "journal_bytes": backlog.log.size,
        "expires": node.certificate.expires and node.certificate.expires.isoformat(),
    }
    node.record()
    recorder, last = node.recorder, node.recorder.last_time
    state["sample_age"] = None if last is None else round(max(recorder.clock() - last, 0.0), 3)
    state["recent"] = windows_of(recorder, model.target)
    if protocol is not None:
        state |= _measures(node, protocol)
        if config.forecast is not None:
            state["horizons"] = _horizons(node)
    state["verdict"] = verdict_of(state)._asdict()
    if protocol is not None and with_digest:
        state["digest"] = digest(node.state_parts())
    return state


def digest(state: Parts) -> str:
    """SHA-256 of a learner's state: equal for states that are equal to the bit."""
    made = hashlib.sha256(str(state.header["learned"]).encode())
    for name, values in sorted(state.arrays.items()):
        made.update(f"{name} {values.dtype} {values.shape}".encode() + values.tobytes())
    return made.hexdigest()


def _measures(node: Node, protocol: Protocol) -> dict[str, Any]:
    measures, model = protocol.measures, node.format.model
    scaled = {name: getattr(measures, name) for name in MEANS}
    return {
        "n_learned": protocol.learned,
        **scaled,
        "in_units": {k: None if v is None else model.error_of(v) for k, v in scaled.items()},
        "n_rounds": measures.n_rounds,
        "n_waited": measures.n_waited,
        "n_idle": measures.n_idle,
        "refused": [
            {"peer": peer, "reason": reason, "n": n}
            for (peer, reason), n in measures.refused.items()
        ],
        "neighbors": {name: dict(facts) for name, facts in _edges(node, protocol)},
    }


def _horizons(node: Node) -> dict[str, dict[str, Any]]:
    """The errors of each horizon, beside those of naive forecasts, in the target's units too."""
    found = {}
    for protocol in node.protocols:
        measures, model = protocol.measures, protocol.model
        scaled = {name: getattr(measures, name) for name in (*MEANS, "mse_seasonal")}
        found[str(model.horizon)] = {
            "n_scored": measures.n_learned,
            **scaled,
            "in_units": {k: None if v is None else model.error_of(v) for k, v in scaled.items()},
        }
    return found


def _edges(node: Node, protocol: Protocol) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each neighbor: the state of the edge, exchanges, traffic."""
    traffic = {} if node.transport is None else node.transport.traffic()
    for name, edge in protocol.measures.edges.items():
        heard, moved = edge.last_heard, traffic.get(name)
        yield (
            name,
            {
                "is_open": edge.is_open,
                "n_exchanged": edge.n_exchanged,
                "n_asked": edge.n_asked,
                "n_epochs": edge.n_epochs,
                "is_distrusted": edge.is_barred,
                "n_distrusted": edge.n_barred,
                "silent_seconds": None if heard is None else round(node.seconds_since(heard), 3),
                "sent": 0 if moved is None else moved.sent,
                "sent_bytes": 0 if moved is None else moved.sent_bytes,
                "received": 0 if moved is None else moved.received,
                "received_bytes": 0 if moved is None else moved.received_bytes,
                "dropped": 0 if moved is None else moved.dropped,
            },
        )
