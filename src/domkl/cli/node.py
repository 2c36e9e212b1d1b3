"""`domkl node`: run one learner of a mesh."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.mesh.node.serve import Options

SUMMARY = "run one learner of a mesh as a process"
DESCRIPTION = """\
Run the learner whose folder domkl mesh init has made, until SIGTERM or Ctrl-C.

It takes samples over HTTP, and from standard input, a CSV file or an MQTT topic; learns them with
its neighbors; and answers predictions meanwhile. What it has acknowledged is on disk, and is
learned once, whatever happens. SIGHUP makes it read mesh.toml and its certificates again.

  domkl node mesh/north
  domkl node mesh/north --csv load.csv --rate 10
  domkl node mesh/north --stdin --until-end < samples.jsonl
"""
EXTRAS = {"aiomqtt": "mqtt", "zenoh": "zenoh"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="of the learner")
    parser.add_argument(
        "--mesh", metavar="FILE", type=Path, help="the mesh file (default: FOLDER/mesh.toml)"
    )
    face = parser.add_argument_group("HTTP")
    face.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="where to listen (default: as mesh.toml says); beyond loopback, with TLS and a token",
    )
    face.add_argument(
        "--require-token", action="store_true", help="demand FOLDER/token on loopback, too"
    )
    source = parser.add_argument_group("samples, besides HTTP")
    source.add_argument("--stdin", action="store_true", help="JSON lines, as of POST /learn")
    source.add_argument("--csv", metavar="FILE", type=Path, help="replay a file with a header")
    source.add_argument(
        "--rate", metavar="R", type=float, help="rows a second; 0: as fast as learned (default: 0)"
    )
    source.add_argument(
        "--rows", metavar="A:B:C", help="which rows, as Python has it: 0::4 is every fourth"
    )
    source.add_argument(
        "--missing",
        choices=("error", "drop"),
        default="error",
        help="rows of --csv with empty cells (default: error)",
    )
    source.add_argument("--mqtt", metavar="URL", help="mqtt://user:password@host:port, or mqtts://")
    source.add_argument("--topic", metavar="T", help="of --mqtt")
    source.add_argument(
        "--until-end", action="store_true", help="stop when all of --stdin or --csv is learned"
    )
    log = parser.add_argument_group("log")
    log.add_argument("--log-format", choices=("text", "json"), default="text")
    log.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    log.add_argument(
        "--log-file", metavar="FILE", type=Path, help="default: standard error; rotated at 10 MB"
    )


def run(args: argparse.Namespace) -> int:
    """Run the node."""
    _check(args)
    try:
        from domkl.mesh.node import telemetry

        options = _options(args)
        from domkl.mesh.node.serve import serve
    except ModuleNotFoundError as error:
        raise _lacking(error) from None
    import asyncio

    with telemetry.logging_to(args.log_format, args.log_level, args.log_file):
        asyncio.run(serve(args.folder, options, mesh_file=args.mesh, transports=make_transport))
    return 0


def _check(args: argparse.Namespace) -> None:
    given = [name for name in ("stdin", "csv", "mqtt") if getattr(args, name)]
    if len(given) > 1:
        raise ParameterError(f"samples come from one of --stdin, --csv, --mqtt, got {given}")
    for name in ("rate", "rows"):
        if getattr(args, name) is not None and args.csv is None:
            raise ParameterError(f"--{name} is for --csv")
    if args.rate is not None and not 0 <= args.rate < float("inf"):
        raise ParameterError(f"rate must be >= 0, got {args.rate}")
    if bool(args.mqtt) != bool(args.topic):
        raise ParameterError("--mqtt and --topic go together")
    if args.until_end and not (args.stdin or args.csv):
        raise ParameterError("--until-end is for --stdin or --csv")


def _options(args: argparse.Namespace) -> "Options":
    from domkl.mesh.node.serve import Options
    from domkl.mesh.node.sources import parse_rows
    from domkl.mesh.transports.base import Address

    return Options(
        http=None if args.http is None else Address.parse(args.http),
        with_token=args.require_token,
        lines=args.stdin,
        csv=args.csv,
        rate=args.rate or 0.0,
        rows=None if args.rows is None else parse_rows(args.rows),
        missing=args.missing,
        topic=None if args.mqtt is None else _topic(args.mqtt, args.topic),
        until_end=args.until_end,
    )


def _topic(url: str, topic: str) -> Any:
    from functools import partial

    from domkl.mesh.node.mqtt import Broker, from_topic

    return partial(from_topic, broker=Broker.parse(url), topic=topic)


def make_transport(home: Any) -> Any:
    """The transport that the mesh file names."""
    from domkl.mesh.node.serve import tls_transport

    if home.config.transport == "tls":
        return tls_transport(home)
    try:
        from domkl.mesh.transports.zenoh import ZenohTransport
    except ModuleNotFoundError as error:
        raise _lacking(error) from None
    config = home.config
    return ZenohTransport(
        home.name,
        home.neighbors,
        home.member.address,
        home.folder,
        router=config.router,
        wait_before_drop=0.2 if config.mode == "lockstep" else 0.001,
    )


def _lacking(error: ModuleNotFoundError) -> ParameterError:
    name = (error.name or "").split(".")[0]
    if name == "domkl":
        raise error
    extra = EXTRAS.get(name, "mesh")
    return ParameterError(f"{name} is not installed; pip install 'domkl[{extra}]'")
