"""What a node reports about itself: one JSON object, `/state`."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import domkl
from domkl.algorithms.registry import name_of
from domkl.mesh.node.node import Node
from domkl.mesh.operate.verdict import verdict_of
from domkl.mesh.protocol.measures import EdgeMeasures
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.store.history_json import windows_of
from domkl.mesh.transports.base import Traffic
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


def record_of(node: Node) -> dict[str, Any]:
    """The state, and what metrics tell besides: counters of this process, in the target's units."""
    state, recorder, expires = state_of(node), node.recorder, node.certificate.expires
    info: Any = 1
    for name in ("mode", "algorithm", "learner", "mesh", "version"):
        info = {state[name]: info}
    frames: dict[str, dict[str, int]] = {}
    for each in state.get("refused", ()):
        frames.setdefault(each["peer"], {})[each["reason"]] = each["n"]
    times = {"expires_at": expires and expires.timestamp(), "last_time": recorder.last_time}
    return {
        "n_learned": 0,
        **state,
        "info": info,
        "n_failed": node.saver.n_failed,
        "frames_refused": frames,
        "scores": {h: _scores(node, h) for h in recorder.horizons},
        **{name: value for name, value in times.items() if value is not None},
    }


def _scores(node: Node, horizon: int) -> dict[str, float]:
    sums, unit = node.recorder.scored(horizon), node.format.model.error_of(1.0)
    squares = {name: float(sums[name]) * unit for name in ("errors", "alone", "last_value")}
    n = int(sums["n"])
    return {"n": n, "n_alone": int(sums["n_alone"]), "n_last_value": n, **squares}


def digest(state: Parts) -> str:
    """SHA-256 of a learner's state: equal for states that are equal to the bit."""
    made = hashlib.sha256(str(state.header["learned"]).encode())
    for name, values in sorted(state.arrays.items()):
        made.update(f"{name} {values.dtype} {values.shape}".encode() + values.tobytes())
    return made.hexdigest()


def _measures(node: Node, protocol: Protocol) -> dict[str, Any]:
    measures = protocol.measures
    return {
        "n_learned": protocol.learned,
        "n_doubted": protocol.n_doubted,
        **_means(protocol, MEANS),
        "n_rounds": measures.n_rounds,
        "n_waited": measures.n_waited,
        "n_idle": measures.n_idle,
        "refused": [
            {"peer": peer, "reason": reason, "n": n}
            for (peer, reason), n in measures.refused.items()
        ],
        "neighbors": {name: _edge(node, name, edge) for name, edge in measures.edges.items()},
    }


def _means(protocol: Protocol, names: Sequence[str]) -> dict[str, Any]:
    """Mean squared errors, scaled and in the target's units."""
    model, scaled = protocol.model, {name: getattr(protocol.measures, name) for name in names}
    in_units = {k: None if v is None else model.error_of(v) for k, v in scaled.items()}
    pinball = protocol.measures.pinball
    in_units["pinball"] = None if pinball is None else pinball * model.error_of(1.0) ** 0.5
    return {**scaled, "pinball": pinball, "in_units": in_units}


def _horizons(node: Node) -> dict[str, dict[str, Any]]:
    """The errors of each horizon, beside those of naive forecasts."""
    return {
        str(each.model.horizon): {
            "n_scored": each.measures.n_learned,
            **_means(each, (*MEANS, "mse_seasonal")),
        }
        for each in node.protocols
    }


def _edge(node: Node, name: str, edge: EdgeMeasures) -> dict[str, Any]:
    """The state of the edge to a neighbor, exchanges, traffic."""
    traffic = {} if node.transport is None else node.transport.traffic()
    heard, moved = edge.last_heard, traffic.get(name, Traffic())
    return {
        "is_open": edge.is_open,
        "n_exchanged": edge.n_exchanged,
        "n_asked": edge.n_asked,
        "n_epochs": edge.n_epochs,
        "is_distrusted": edge.is_barred,
        "n_distrusted": edge.n_barred,
        "is_suspicious": edge.is_suspicious,
        "share": round(edge.share, 4),
        "n_limited": edge.n_limited,
        "silent_seconds": None if heard is None else round(node.seconds_since(heard), 3),
        **asdict(moved),
    }
