"""A mesh file as text, with a comment for every part."""

import json
from dataclasses import fields
from typing import Any

from domkl.mesh.config.settings import MeshConfig, algorithm_name, parameters_of
from domkl.mesh.protocol.model import Range

_TIMING = {
    "round_timeout": "lockstep: a round ends after this, whoever is missing",
    "resend_after": "ask again for what has not come",
    "idle_after": "without a sample for so long, follow the neighbors",
    "alive_every": "say something at least so often",
    "silence": "a neighbor not heard for so long is down",
    "start_timeout": "lockstep: wait so long for all neighbors before round 1",
}


def as_text(config: MeshConfig) -> str:
    """Write it so that `read_config` gives the same again."""
    parts = (_head, _timing, _data, _model, _learners)
    return "\n".join("\n".join(part(config)) + "\n" for part in parts)


def _head(config: MeshConfig) -> list[str]:
    router = "" if config.router is None else str(config.router)
    return [
        "# The file that all learners of a mesh agree on; every learner's folder holds a copy.",
        "# [target], inputs or lags, and [model] must be equal everywhere: learners that differ",
        "# in them do not exchange anything. After a change: copy, then SIGHUP to the nodes.",
        "",
        f"name = {_value(config.name)}",
        f"mode = {_value(config.mode)}  # lockstep: rounds as in the simulation; async: no waiting",
        f"transport = {_value(config.transport)}  # tls or zenoh, both with mutual certificates",
        f"router = {_value(router)}" if router else '# router = "host:port"  # zenoh only',
        f"checkpoint_every = {config.checkpoint_every}  # samples",
        f"queue = {config.queue}  # samples that a node holds before they are learned",
        "",
        "# who hears whom; every learner must be reached",
        "edges = [",
        *(f"  [{_value(a)}, {_value(b)}]," for a, b in config.edges),
        "]",
        "",
        f"outside = {_value(config.outside)}  # a value out of its range: clip (and count), refuse",
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
        "# declared ranges, in your units; a mesh cannot scale by a minimum that it does not know",
        "[target]",
        *_range(config.target),
    ]
    for each in () if config.lags is not None else config.inputs:
        lines += ["", "[[inputs]]", *_range(each)]
    return lines


def _range(each: Range) -> list[str]:
    return [f"name = {_value(each.name)}", f"low = {each.low!r}", f"high = {each.high!r}"]


def _model(config: MeshConfig) -> list[str]:
    listed = config.kernels != "default"
    kernels = f"[{', '.join(map(_value, config.kernels))}]" if listed else '"default"'
    loss = getattr(config.algorithm, "loss", None)
    parameters = {key: _value(value) for key, value in parameters_of(config.algorithm).items()}
    if loss is not None:
        parameters["loss"] = _loss(loss)
    return [
        "[model]",
        f"algorithm = {_value(algorithm_name(config.algorithm))}",
        f"kernels = {kernels}  # or bandwidths of Gaussians, such as [0.1, 1.0, 10.0]",
        *([f"linear = {_value(config.linear)}  # add the linear kernel"] if listed else []),
        f"frequencies = {config.n_frequencies}  # of each kernel; a message grows with them",
        f"seed = {config.seed}  # of the frequencies",
        f"dtype = {_value(config.dtype)}  # float32 halves the messages",
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
        "# address: where neighbors find a learner, where it listens; http: status, predictions,",
        "# metrics. The order of the file is the order in which messages are summed.",
    ]
    for member in config.members:
        lines += [
            "[[learners]]",
            f"name = {_value(member.name)}",
            f"address = {_value(str(member.address))}",
            f"http = {_value(str(member.http))}",
            "",
        ]
    return lines[:-1]


def _value(value: Any) -> str:
    """A TOML value; what JSON writes for text, numbers and truth is TOML too."""
    return json.dumps(value, ensure_ascii=False)
