"""Write a mesh file, with a comment for every part."""

import json
from dataclasses import fields
from typing import Any

from domkl.mesh.config.settings import MeshConfig, algorithm_name
from domkl.mesh.protocol.model import Range
from domkl.mesh.transports.registry import TRANSPORTS

_TIMING = {
    "round_timeout": "lockstep: a round ends after this time, even if a neighbor is missing",
    "resend_after": "ask again for a message that has not arrived",
    "idle_after": "without a sample for this time, follow the neighbors",
    "alive_every": "send something at least this often",
    "silence": "a neighbor that sends nothing for this time is down",
    "start_timeout": "lockstep: wait this long for all neighbors before round 1",
}

_ALL = " or ".join(TRANSPORTS)
_ROUTED = " or ".join(each.name for each in TRANSPORTS.values() if each.router)


def as_text(config: MeshConfig) -> str:
    """A text that `read_config` reads as the same configuration."""
    parts = (_head, _timing, _data, _forecast, _model, _learners)
    made = ("\n".join(part(config)) for part in parts)
    return "\n".join(text + "\n" for text in made if text)


def _head(config: MeshConfig) -> list[str]:
    router = "" if config.router is None else str(config.router)
    return [
        "# All learners of a mesh share this file; each learner's folder has a copy.",
        "# [target], inputs or lags, and [model] must be the same everywhere: learners that differ",
        "# in them exchange nothing. After a change of DIR/mesh.toml run:  domkl mesh apply DIR",
        "",
        f"name = {_value(config.name)}",
        f"mode = {_value(config.mode)}  # lockstep: rounds as in the simulation; async: no waiting",
        f"transport = {_value(config.transport)}  # {_ALL}, with certificates at both ends",
        f"router = {_value(router)}" if router else f'# router = "host:port"  # {_ROUTED} only',
        f"checkpoint_every = {config.checkpoint_every}  # samples between two checkpoints",
        f"queue = {config.queue}  # samples that may wait in a node to be learned",
        f"{'# ' if config.guard else ''}guard = false  # believe every neighbor",
        "",
        "# neighbors; the network must be connected",
        "edges = [",
        *(f"  [{_value(a)}, {_value(b)}]," for a, b in config.edges),
        "]",
        "",
        f"outside = {_value(config.outside)}  # values outside their range: clip, refuse",
        *([] if config.lags is None else [_lags(config)]),
    ]


def _lags(config: MeshConfig) -> str:
    return (
        f"lags = {config.lags}  # a series: the inputs are the target's last values, newest first"
    )


def _timing(config: MeshConfig) -> list[str]:
    seconds = config.timing._asdict()
    width = max(len(f"{key} = {value!r}") for key, value in seconds.items())
    lines = [
        f"{f'{k} = {v!r}':{width}}  # {_TIMING.get(k, '')}".rstrip(" #") for k, v in seconds.items()
    ]
    return ["[timing]  # seconds", *lines]


def _data(config: MeshConfig) -> list[str]:
    lines = [
        "# ranges in your own units; values are scaled by them to [0, 1]",
        "[target]",
        *_range(config.target),
    ]
    for each in () if config.lags is not None else config.inputs:
        lines += ["", "[[inputs]]", *_range(each)]
    return lines


_FORECAST = {
    "horizons": "steps ahead; each has a learner of its own",
    "step": "step of the clock",
    "lags": "lags of the target; lag 1 is the newest value",
    "calendar": "inputs computed from the time: hour, weekday, yearday",
    "ahead": "inputs that are known ahead, such as a weather forecast",
    "hold": "how long the last known value replaces a missing input",
    "season": "period of the seasonal naive forecast to compare with",
}


def _forecast(config: MeshConfig) -> list[str]:
    if config.forecast is None:
        return []
    given = {key: getattr(config.forecast, key) for key in _FORECAST}
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in given.items()}
    return [
        "[forecast]",
        *(f"{key} = {_value(value)}  # {_FORECAST[key]}" for key, value in plain.items()),
    ]


def _range(each: Range) -> list[str]:
    return [f"name = {_value(each.name)}", f"low = {each.low!r}", f"high = {each.high!r}"]


def _model(config: MeshConfig) -> list[str]:
    listed = config.kernels != "default"
    kernels = f"[{', '.join(map(_value, config.kernels))}]" if listed else '"default"'
    given = {key: v for key, v in config.algorithm.parameters().items() if v is not None}
    loss = given.get("loss")
    parameters = {key: _value(value) for key, value in given.items() if key != "loss"}
    if loss is not None:
        parameters["loss"] = _loss(loss)
    return [
        "[model]",
        f"algorithm = {_value(algorithm_name(config.algorithm))}",
        f"kernels = {kernels}  # or bandwidths of Gaussians, such as [0.1, 1.0, 10.0]",
        *([f"linear = {_value(config.linear)}  # add the linear kernel"] if listed else []),
        f"frequencies = {config.n_frequencies}  # per kernel; messages grow with it",
        f"seed = {config.seed}  # seed of the frequencies",
        f"dtype = {_value(config.dtype)}  # float32 halves the messages",
        *([f"delay = {config.delay}  # samples until a label is seen"] if config.delay else []),
        "",
        "[model.parameters]",
        *(f"{key} = {value}" for key, value in parameters.items()),
    ]


def _loss(loss: Any) -> str:
    name = type(loss).__name__.lower()
    shapes = {each.name: getattr(loss, each.name) for each in fields(loss)}
    if not shapes:
        return _value(name)
    inner = ", ".join(f"{key} = {_value(float(value))}" for key, value in shapes.items())
    return f"{{ name = {_value(name)}, {inner} }}"


def _learners(config: MeshConfig) -> list[str]:
    lines = [
        "# address: where a learner listens for its neighbors; http: for samples, predictions and",
        "# metrics. Messages are summed in the order of this list. place = [east, north] puts it",
        "# on the map of the page.",
    ]
    for member in config.members:
        lines += [
            "[[learners]]",
            f"name = {_value(member.name)}",
            f"address = {_value(str(member.address))}",
            f"http = {_value(str(member.http))}",
            *([] if member.place is None else [f"place = {_value(list(member.place))}"]),
            "",
        ]
    return lines[:-1]


def _value(value: Any) -> str:
    """A TOML value; JSON writes text, numbers and booleans in the same way."""
    return json.dumps(value, ensure_ascii=False)
