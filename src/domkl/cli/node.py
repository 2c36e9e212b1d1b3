"""`domkl node`: run one learner of a mesh."""

import argparse
import os
import re
from collections.abc import Container
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.cli.options import Group, add_fields, flags_of, made_from, option, switch
from domkl.errors import ParameterError
from domkl.mesh.config import MESH
from domkl.mesh.node.registry import OUTLETS, SOURCES, LinkEntry
from domkl.mesh.node.resident import leave_out, to_stay
from domkl.mesh.operate.parent import end_with, require_linux
from domkl.mesh.transports.registry import missing_extra

if TYPE_CHECKING:
    from domkl.mesh.node.serve import Options

PASSWORD = re.compile(r"//[^/?#@]*:[^/?@]*@")  # in a URL
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
    out = parser.add_argument_group("publishing predictions, one after each sample, as JSON")
    add_links(source, out)
    switch(source, "--until-end", "stop when all samples of --stdin or --csv are learned")
    log = parser.add_argument_group("log")
    forms, levels = ("text", "json"), ("debug", "info", "warning", "error")
    option(log, "--log-format", None, "format of a line", default="text", choices=forms)
    option(log, "--log-level", None, "lowest level to log", default="info", choices=levels)
    option(log, "--log-file", "FILE", "file, rotated at 10 MB (default: stderr)", type=Path)


def add_links(source: Group, out: Group, without: Container[str] = ()) -> None:
    """Declare the options of the sources and outlets of a node, except some."""
    for entry in SOURCES:
        add_fields(source, entry.options, without=without)
    for entry in OUTLETS:
        add_fields(out, entry.options, without=without)
    broker = "broker for --topic and --publish: mqtt://host:port, or mqtts://"
    option(out, "--mqtt", "URL", f"{broker}; @FILE as for --webhook, or DOMKL_MQTT")


def run(args: argparse.Namespace) -> int:
    """Run the node."""
    require_linux()
    if args.parent is not None:
        end_with(args.parent)
    given = check_links(args)
    args.mqtt, args.webhook = url_of(args, "mqtt"), url_of(args, "webhook")
    if args.until_end and not any(entry.ends and entry.name in given for entry in SOURCES):
        able = " or ".join(f"--{entry.name}" for entry in SOURCES if entry.ends)
        raise ParameterError(f"--until-end needs {able}")
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


def check_links(args: argparse.Namespace) -> list[str]:
    """Refuse options of sources and outlets that do not go together; return the sources given."""
    sources = [entry for entry in SOURCES if hasattr(args, entry.name)]
    given = [entry.name for entry in sources if getattr(args, entry.name)]
    if len(given) > 1:
        names = ", ".join(f"--{entry.name}" for entry in sources)
        raise ParameterError(f"samples come from one of {names}, got {given}")
    for entry in sources:
        for each in () if entry.name in given else flags_of(entry.options):
            if getattr(args, each.name, each.default) != each.default:
                raise ParameterError(f"--{each.name} needs --{entry.name}")
    is_used = args.topic is not None or args.publish not in (None, "-")
    is_there = args.mqtt is not None
    if is_there != is_used and (is_there or not os.environ.get("DOMKL_MQTT")):
        raise ParameterError(
            "--mqtt needs --topic or --publish TOPIC, and both of these need --mqtt"
        )
    for name in ("mqtt", "webhook"):
        if PASSWORD.search(getattr(args, name) or ""):
            raise ParameterError(
                f"--{name} must have no password, which all users of this machine can read there;"
                f" write the URL to a file and pass --{name} @FILE, or set DOMKL_{name.upper()}"
            )
    return given


def url_of(args: argparse.Namespace, name: str) -> str | None:
    """The URL of a link: as it is given, in the file that is given, or in the environment."""
    given: str = getattr(args, name) or os.environ.get(f"DOMKL_{name.upper()}", "")
    if given.startswith("@"):
        try:
            given = Path(given[1:]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ParameterError(f"--{name} must be @FILE with a URL in it, got {error}") from None
    return given or None


def _options(args: argparse.Namespace) -> "Options":
    from domkl.mesh.node.serve import Options
    from domkl.mesh.transports.base import Address

    sources, outlets = (
        [entry.make(_made(entry, args)) for entry in entries if getattr(args, entry.name)]
        for entries in (SOURCES, OUTLETS)
    )
    return Options(
        http=None if args.http is None else Address.parse(args.http),
        with_token=args.require_token,
        source=sources[0] if sources else None,
        outlets=tuple(outlets),
        until_end=args.until_end,
        accept_loss=args.accept_loss,
    )


def _made(entry: LinkEntry, args: argparse.Namespace) -> Any:
    """The options of a source or an outlet; several of them use the broker of --mqtt."""
    names = [each.name for each in fields(entry.options)]
    return made_from(entry.options, args, **({"mqtt": args.mqtt} if "mqtt" in names else {}))
