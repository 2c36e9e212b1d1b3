"""A node's metrics for Prometheus, made from its record at each request as metrics.toml says.

A node loads this module when it is first asked for them: many nodes never are.
"""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
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
from domkl.mesh.node.telemetry import record_of

KIND = CONTENT_TYPE_LATEST
FAMILIES: dict[str, Any] = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
TABLE = tomllib.loads(files("domkl.mesh.node").joinpath("metrics.toml").read_text())


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
        record = record_of(self._node)
        for name, fact in TABLE.items():
            paths = fact["from"] if isinstance(fact["from"], dict) else {fact["from"]: None}
            if not all(path.partition(".")[0] in record for path in paths):
                continue  # of a node that forecasts, or has a certificate
            made = FAMILIES[fact["kind"]](f"domkl_{name}", fact["text"], labels=fact.get("labels"))
            for path, last in paths.items():
                for labels, value in found(record, path):
                    made.add_metric([*labels, *([last] if last else [])], float(value))
            yield made


def found(record: Any, path: str) -> Iterator[tuple[list[str], Any]]:
    """Keys and values at a path, in which * stands for every key; None is left out.

    Examples
    --------
    >>> list(found({"edges": {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": None}}}, "edges.*.n"))
    [(['a'], 1), (['b'], 2)]
    """
    first, _, rest = path.partition(".")
    if not path:
        yield from [] if record is None else [([], record)]
    elif first == "*":
        for key, value in record.items():
            yield from (([str(key), *labels], v) for labels, v in found(value, rest))
    else:
        yield from found(record[first], rest)
