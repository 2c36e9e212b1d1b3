"""`domkl node`: run one learner of a mesh."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.errors import ParameterError
from domkl.mesh.local.parent import end_with
from domkl.mesh.transports.registry import missing_extra

if TYPE_CHECKING:
    from domkl.mesh.node.serve import Options

SUMMARY = "run one learner of a mesh as a process"
DESCRIPTION = """\
Run a learner from the folder that domkl mesh init has made, until SIGTERM or Ctrl-C.

It takes samples over HTTP, and from standard input, a CSV file or an MQTT topic; learns them with
its neighbors; and answers requests for predictions meanwhile. A sample that it has acknowledged is
on disk, and is learned exactly once. On SIGHUP it reads mesh.toml and its certificates again.

  domkl node mesh/north
  domkl node mesh/north --csv load.csv --rate 10
  domkl node mesh/north --stdin --until-end < samples.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the learner")
    parser.add_argument(
        "--mesh", metavar="FILE", type=Path, help="the mesh file (default: FOLDER/mesh.toml)"
    )
    http = parser.add_argument_group("HTTP")
    http.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="address to listen at (default: as in mesh.toml); beyond loopback with TLS and token",
    )
    http.add_argument(
        "--require-token",
        action="store_true",
        help="demand the token in FOLDER/token on loopback as well",
    )
    source = parser.add_argument_group("further sources of samples")
    source.add_argument(
        "--stdin",
        action="store_true",
        help="JSON lines from standard input, each as the body of POST /learn",
    )
    source.add_argument("--csv", metavar="FILE", type=Path, help="rows of a CSV file with a header")
    source.add_argument(
        "--rate",
        metavar="R",
        type=float,
        help="rows a second; 0 for as fast as they are learned (default: 0)",
    )
    source.add_argument(
        "--rows", metavar="A:B:C", help="rows of --csv, as a Python slice: 0::4 is every fourth"
    )
    source.add_argument(
        "--missing",
        choices=("error", "drop"),
        default="error",
        help="what to do with rows that have empty cells (default: error)",
    )
    source.add_argument("--mqtt", metavar="URL", help="mqtt://user:password@host:port, or mqtts://")
    source.add_argument("--topic", metavar="T", help="topic of --mqtt")
    source.add_argument(
        "--until-end",
        action="store_true",
        help="stop when all samples of --stdin or --csv are learned",
    )
    log = parser.add_argument_group("log")
    log.add_argument("--log-format", choices=("text", "json"), default="text")
    log.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    log.add_argument(
        "--log-file",
        metavar="FILE",
        type=Path,
        help="file, rotated at 10 MB (default: standard error)",
    )
    parser.add_argument(
        "--parent", metavar="PID", type=int, help="end when this parent process ends (Linux)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the node."""
    if args.parent is not None:
        end_with(args.parent)
    _check(args)
    try:
        from domkl.mesh.node.log import logging_to
        from domkl.mesh.node.serve import serve

        options = _options(args)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    import asyncio

    with logging_to(args.log_format, args.log_level, args.log_file):
        asyncio.run(serve(args.folder, options, mesh_file=args.mesh))
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
