"""A node's metrics for Prometheus, made from its own counters at each request.

A node loads this module when it is first asked for them: many nodes never are.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from domkl.mesh.node.node import Node
from domkl.mesh.node.telemetry import state_of

KIND = CONTENT_TYPE_LATEST


def text_of(node: Node) -> bytes:
    """The metrics of this node and process, as Prometheus reads them."""
    return generate_latest(registry_of(node))


def registry_of(node: Node) -> CollectorRegistry:
    """A Prometheus registry with the metrics of this node and process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_NodeCollector(node))
    ProcessCollector(registry=registry)
    return registry


class _NodeCollector(Collector):
    """Reads the node's own counters at each request, so that nothing is counted twice."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        node, state = self._node, state_of(self._node)
        yield _gauge("info", "Version, learner, algorithm.", 1, **_info(state))
        yield _gauge("ready", "1 while the node learns and predicts.", int(state["is_ready"]))
        yield _counter("samples_accepted", "Samples on disk.", state["n_accepted"])
        yield _counter("samples_learned", "Samples learned.", state.get("n_learned", 0))
        yield _gauge("samples_queued", "Accepted and not yet learned.", state["n_queued"])
        yield _counter("samples_repeated", "Sent again with a known id.", state["n_repeated"])
        yield _by("samples_rejected", "Samples that were not accepted.", ["reason"],
                  [((reason,), n) for reason, n in state["rejected"].items()])  # fmt: skip
        yield _counter("values_outside", "Values clipped to their range.", state["n_outside"])
        yield _counter("samples_lost", "Acknowledged samples lost to damage.", state["n_lost"])
        yield _gauge("checkpoint_number", "Last sample in a checkpoint.", state["checkpoint"])
        yield _counter(
            "checkpoints_failed", "Checkpoints that could not be written.", node.saver.n_failed
        )
        yield _gauge("journal_bytes", "Write-ahead log on disk.", state["journal_bytes"])
        yield _by("strangers_refused", "Connections refused.", ["reason"],
                  [((reason,), n) for reason, n in state["strangers"].items()])  # fmt: skip
        yield from _of_links(node)
        if node.certificate.expires is not None:
            yield _gauge("certificate_expires_timestamp_seconds", "When it expires, since 1970.",
                         node.certificate.expires.timestamp())  # fmt: skip
        yield from _of_errors(node)
        if node.protocol is not None:
            yield from _of_measures(state)
            yield from _of_horizons(state.get("horizons", {}))
            yield from _of_edges(state["neighbors"])


def _of_links(node: Node) -> Iterator[Metric]:
    made = GaugeMetricFamily(
        "domkl_link_up", "0 while a broker or webhook is lost.", labels=["link"]
    )
    for name, is_up in node.links.items():
        made.add_metric([name], int(is_up))
    yield made
    rows = [((name, outcome), n) for name, counts in node.published.items()
            for outcome, n in counts.items()]  # fmt: skip
    yield _by("predictions", "Predictions that left the node.", ["link", "outcome"], rows)


def _of_measures(state: dict[str, Any]) -> Iterator[Metric]:
    said = {
        "mse": "Mean squared error so far, scaled.",
        "mse_alone": "The same of a twin without neighbors.",
        "mse_last_value": "The same for the previous label as the prediction.",
        "neighbor_gap": "Mean squared distance to the neighbors' predictions.",
    }
    for name, text in said.items():
        if state[name] is not None:
            yield _gauge(name, text, state[name])
    yield _counter("rounds", "Steps, including those without a sample.", state["n_rounds"])
    yield _counter("rounds_waited", "Rounds that ended by time-out.", state["n_waited"])
    yield _counter("rounds_idle", "Steps without a sample.", state["n_idle"])
    rows = [((each["peer"], each["reason"]), each["n"]) for each in state["refused"]]
    yield _by("frames_refused", "Frames of neighbors that were refused.", ["peer", "reason"], rows)


def _of_horizons(horizons: dict[str, dict[str, Any]]) -> Iterator[Metric]:
    if not horizons:
        return
    scored = [((h,), facts["n_scored"]) for h, facts in horizons.items()]
    yield _by("forecasts_scored", "Forecasts whose label has come.", ["horizon"], scored)
    made = GaugeMetricFamily(
        "domkl_forecast_mse",
        "Mean squared error so far, in the target's units, by who forecasts.",
        labels=["horizon", "by"],
    )
    words = {"mse": "learner", "mse_alone": "alone", "mse_last_value": "last value",
             "mse_seasonal": "last season"}  # fmt: skip
    for h, facts in horizons.items():
        for name, who in words.items():
            if facts["in_units"][name] is not None:
                made.add_metric([h, who], facts["in_units"][name])
    yield made


def _of_errors(node: Node) -> Iterator[Metric]:
    """Counters of this process, in the target's units: `rate()` of them gives any window."""
    width = node.format.model.error_of(1.0)
    scored = CounterMetricFamily("domkl_scored", "Predictions compared.", labels=["horizon", "of"])
    errors = CounterMetricFamily(
        "domkl_squared_error", "Sum of squares, in squared units.", labels=["horizon", "of"]
    )
    for h in node.recorder.horizons:
        sums = node.recorder.scored(h)
        kinds = {"mesh": ("n", "errors"), "alone": ("n_alone", "alone"),
                 "last value": ("n", "last_value")}  # fmt: skip
        for kind, (n, total) in kinds.items():
            scored.add_metric([str(h), kind], int(sums[n]))
            errors.add_metric([str(h), kind], float(sums[total]) * width)
    yield from (scored, errors)
    if node.recorder.last_time is not None:
        yield _gauge("last_sample_timestamp_seconds", "When it was learned, since 1970.",
                     node.recorder.last_time)  # fmt: skip


def _of_edges(edges: dict[str, dict[str, Any]]) -> Iterator[Metric]:
    open_ = GaugeMetricFamily("domkl_edge_open", "1 while exchanging.", labels=["peer"])
    silent = GaugeMetricFamily(
        "domkl_edge_silent_seconds", "Since it was last heard.", labels=["peer"]
    )
    for peer, facts in edges.items():
        open_.add_metric([peer], int(facts["is_open"]))
        if facts["silent_seconds"] is not None:
            silent.add_metric([peer], facts["silent_seconds"])
    yield from (open_, silent)
    for name, key in {"exchanges": "n_exchanged", "asked": "n_asked", "epochs": "n_epochs",
                      "dropped": "dropped"}.items():  # fmt: skip
        rows = [((peer,), facts[key]) for peer, facts in edges.items()]
        yield _by(f"edge_{name}", "Since the start.", ["peer"], rows)
    ways = {"out": "sent", "in": "received"}
    for name, suffix in {"messages": "", "bytes": "_bytes"}.items():
        moved = [
            ((peer, way), facts[key + suffix])
            for peer, facts in edges.items()
            for way, key in ways.items()
        ]
        yield _by(f"edge_{name}", "Moved.", ["peer", "direction"], moved)


def _info(state: dict[str, Any]) -> dict[str, str]:
    return {name: str(state[name]) for name in ("version", "mesh", "learner", "algorithm", "mode")}


def _gauge(name: str, text: str, value: float, **labels: str) -> Metric:
    made = GaugeMetricFamily(f"domkl_{name}", text, labels=list(labels))
    made.add_metric(list(labels.values()), value)
    return made


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"domkl_{name}", text, value=value)


def _by(
    name: str, text: str, labels: list[str], rows: Sequence[tuple[tuple[str, ...], int]]
) -> Metric:
    made = CounterMetricFamily(f"domkl_{name}", text, labels=labels)
    for values, n in rows:
        made.add_metric(list(values), n)
    return made
