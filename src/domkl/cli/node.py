"""`domkl node`: run one learner of a mesh."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.cli.options import option, switch
from domkl.errors import ParameterError
from domkl.mesh.config import MESH
from domkl.mesh.node.resident import leave_out, to_stay
from domkl.mesh.operate.parent import end_with, require_linux
from domkl.mesh.transports.registry import missing_extra
from domkl.text import parse_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from domkl.data.nodes import Form
    from domkl.mesh.node.node import Node
    from domkl.mesh.node.publish import Outlet
    from domkl.mesh.node.serve import Options

SUMMARY = "run one learner of a mesh as a process"
DESCRIPTION = """\
Run a learner from a folder that domkl mesh init has created, until SIGTERM or Ctrl-C.

It accepts samples over HTTP, from standard input, from a CSV file or from an MQTT topic; learns
from them together with its neighbors; answers requests for predictions at the same time, and can
publish a prediction after each sample. An acknowledged sample is on disk and is learned exactly
once; a prediction is published at most once. On SIGHUP the node reads mesh.toml and its
certificates again.

  domkl node mesh/north
  domkl node mesh/north --csv load.csv --rate 10
  domkl node mesh/north --stdin --until-end --publish - < samples.jsonl
  domkl node mesh/north --mqtt mqtt://broker --topic sensors/north --publish domkl/north
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the learner")
    option(parser, "--mesh", "FILE", "the mesh file (default: FOLDER/mesh.toml)", type=Path)
    option(parser, "--parent", "PID", "end when this parent process ends (Linux)", type=int)
    lost = "start although acknowledged samples are missing on disk; the log says how many"
    switch(parser, "--accept-loss", lost)
    http = parser.add_argument_group("HTTP")
    where = (
        "address to listen at (default: as in mesh.toml); beyond loopback it uses TLS and a token"
    )
    option(http, "--http", "HOST:PORT", where)
    switch(http, "--require-token", "require the token in FOLDER/token on loopback as well")
    source = parser.add_argument_group("further sources of samples")
    switch(source, "--stdin", "JSON lines from standard input, each as the body of POST /learn")
    option(source, "--csv", "FILE", "rows of a CSV file with a header", type=Path)
    rate = "rows per second; 0 for as fast as they are learned (default: 0)"
    option(source, "--rate", "R", rate, type=float)
    option(source, "--rows", "A:B:C", "rows of --csv, as a Python slice: 0::4 is every fourth")
    option(
        source, "--missing", None, "what to do with rows that have empty cells",
        default="error", choices=("error", "drop"),
    )  # fmt: skip
    option(source, "--time", "COLUMN", "column of --csv with the time, or year,month,day,hour")
    option(source, "--nodes", "COLUMN", "column of --csv with the learner of a row")
    option(source, "--topic", "T", "topic of --mqtt with samples as JSON")
    switch(source, "--until-end", "stop when all samples of --stdin or --csv are learned")
    out = parser.add_argument_group("publishing predictions, one after each sample, as JSON")
    option(out, "--publish", "T", "topic of --mqtt; or - for lines on standard output")
    option(out, "--webhook", "URL", "POST to http://user:password@host/path, or https://")
    prefix = "where Home Assistant looks for sensors, for --publish; '' for none"
    option(out, "--discovery", "PREFIX", prefix, default="homeassistant")
    broker = "broker for --topic and --publish: mqtt://user:password@host:port, or mqtts://"
    option(parser, "--mqtt", "URL", broker)
    log = parser.add_argument_group("log")
    forms, levels = ("text", "json"), ("debug", "info", "warning", "error")
    option(log, "--log-format", None, "format of a line", default="text", choices=forms)
    option(log, "--log-level", None, "lowest level to log", default="info", choices=levels)
    option(log, "--log-file", "FILE", "file, rotated at 10 MB (default: stderr)", type=Path)


def run(args: argparse.Namespace) -> int:
    """Run the node."""
    require_linux()
    if args.parent is not None:
        end_with(args.parent)
    _check(args)
    leave_out(args.mesh or args.folder / MESH)
    try:
        with to_stay():
            from domkl.mesh.node.serve import serve
            from domkl.mesh.process_log import logging_to
        options = _options(args)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    import asyncio

    with logging_to(args.log_format, args.log_level, args.log_file):
        asyncio.run(serve(args.folder, options, mesh_file=args.mesh))
    return 0


def _check(args: argparse.Namespace) -> None:
    given = [name for name in ("stdin", "csv", "topic") if getattr(args, name)]
    if len(given) > 1:
        raise ParameterError(f"samples come from one of --stdin, --csv, --topic, got {given}")
    for name in ("rate", "rows", "time", "nodes"):
        if getattr(args, name) is not None and args.csv is None:
            raise ParameterError(f"--{name} needs --csv")
    if args.rate is not None and not 0 <= args.rate < float("inf"):
        raise ParameterError(f"rate must be >= 0, got {args.rate}")
    is_used = args.topic is not None or args.publish not in (None, "-")
    if (args.mqtt is not None) != is_used:
        raise ParameterError(
            "--mqtt needs --topic or --publish TOPIC, and both of these need --mqtt"
        )
    if args.until_end and not (args.stdin or args.csv):
        raise ParameterError("--until-end needs --stdin or --csv")


def _options(args: argparse.Namespace) -> "Options":
    from domkl.mesh.node.serve import Options
    from domkl.mesh.transports.base import Address

    return Options(
        http=None if args.http is None else Address.parse(args.http),
        with_token=args.require_token,
        lines=args.stdin,
        csv=args.csv,
        rate=args.rate or 0.0,
        rows=parse_rows(args.rows),
        missing=args.missing,
        form=form_of(args),
        topic=None if args.topic is None else _topic(args.mqtt, args.topic),
        outlets=tuple(_outlets(args)),
        until_end=args.until_end,
        accept_loss=args.accept_loss,
    )


def form_of(args: argparse.Namespace) -> "Form | None":
    """Where a file has its times and nodes, by the options --time and --nodes."""
    if args.time is None:
        return None
    from domkl.data.nodes import Form

    return Form(time=tuple(word.strip() for word in args.time.split(",")), nodes=args.nodes)


def _outlets(args: argparse.Namespace) -> "Iterator[Callable[[Node], Outlet]]":
    from functools import partial

    from domkl.mesh.node.publish import Lines, Webhook

    if args.publish == "-":
        yield lambda node: Lines()
    elif args.publish is not None:
        from domkl.mesh.node.mqtt import Broker, Topic, check_topic

        for topic in (args.publish, args.discovery or "none"):
            check_topic(topic)
        broker = Broker.parse(args.mqtt)
        yield partial(Topic, broker=broker, topic=args.publish, discovery=args.discovery)
    if args.webhook is not None:
        hook = Webhook(args.webhook)
        yield lambda node: hook


def _topic(url: str, topic: str) -> Any:
    from functools import partial

    from domkl.mesh.node.mqtt import Broker, check_topic, from_topic

    broker = Broker.parse(url)
    return partial(from_topic, broker=broker, topic=check_topic(topic, is_filter=True))
