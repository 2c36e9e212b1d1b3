"""The subcommands of `domkl mesh` that set up and change a mesh; needs the extra `mesh`."""

import argparse
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from domkl.cli.mesh_demo import demo
from domkl.cli.mesh_watch import status, ui, up
from domkl.errors import ParameterError
from domkl.mesh.config import folder as folders
from domkl.mesh.config.file import MeshConfig, config_of
from domkl.mesh.config.settings import members_at, next_member
from domkl.mesh.config.topology import named_edges, parse_edges
from domkl.mesh.operate.backup import back_up
from domkl.mesh.operate.backup import restore as restore_archive
from domkl.mesh.operate.launcher import reload_running
from domkl.mesh.transports import registry
from domkl.mesh.transports.base import Address


def init(args: argparse.Namespace) -> int:
    """Make the folder of a new mesh."""
    config = config_of(_table(args))
    folders.init_mesh(args.folder, config, days=args.days)
    n_edges = len(config.edges)
    edges = "1 edge" if n_edges == 1 else f"{n_edges} edges"
    print(f"wrote {args.folder}: {len(config.members)} learners, {edges}, and their keys")
    print(f"next: look at {args.folder / folders.MESH}, then  domkl mesh up {args.folder}")
    return 0


def apply(args: argparse.Namespace) -> int:
    """Copy an edited mesh.toml to the learners."""
    config, copied = folders.apply_mesh(args.folder)
    if not copied:
        print("nothing to copy: mesh.toml was not edited since it was copied last")
        return 0
    print(f"copied mesh.toml to {', '.join(copied)}")
    _tell(args.folder, config, "mesh.toml")
    return 0


def add(args: argparse.Namespace) -> int:
    """Add a learner."""
    config = folders.read_mesh(args.folder)
    edges = parse_edges(args.edges, [*config.names, args.name])
    member = next_member(config.members, args.name, args.host or config.members[0].address.host)
    new = folders.add_learner(args.folder, member, edges, days=args.days)
    near = ", ".join(new.neighbors(args.name))
    print(f"added {args.name} at {member.address}, neighbors {near}")
    _tell(args.folder, new, "mesh.toml")
    return 0


def remove(args: argparse.Namespace) -> int:
    """Remove a learner."""
    config = folders.read_mesh(args.folder)
    edges = parse_edges(args.edges or "", config.names)
    new, kept = folders.remove_learner(args.folder, args.name, edges)
    where = "" if kept is None else f"; its folder is now {kept}, without the key"
    print(f"removed {args.name}{where}")
    _tell(args.folder, new, "mesh.toml")
    return 0


def rotate_keys(args: argparse.Namespace) -> int:
    """Renew keys, or begin or end a change of the authority."""
    if args.authority and args.names:
        raise ParameterError(f"--authority is for all learners, got {args.names[0]!r}")
    if args.authority == "new":
        config = folders.begin_authority(args.folder)
        print("made a new authority; both are trusted until  rotate-keys --authority retire")
    elif args.authority == "retire":
        config = folders.retire_authority(args.folder)
        print("the old authority is not trusted any more")
    else:
        config = folders.rotate_keys(args.folder, args.names, days=args.days)
        print(f"new keys, good for {args.days} days: {', '.join(args.names or config.names)}")
    _tell(args.folder, config, "ca.pem, node.pem and node.key")
    return 0


def backup(args: argparse.Namespace) -> int:
    """Write an archive."""
    made = back_up(args.folder, args.archive, with_keys=args.with_keys)
    samples = ", ".join(f"{name} up to sample {n}" for name, n in made.learners.items())
    print(f"wrote {args.archive}: {samples or 'no learner has data here'}")
    if made.has_keys:
        print("it holds private keys: whoever has it can join the mesh", file=sys.stderr)
    else:
        print("keys and tokens are not in it; --with-keys adds them", file=sys.stderr)
    return 0


def restore(args: argparse.Namespace) -> int:
    """Restore an archive."""
    made = restore_archive(args.archive, args.folder)
    print(f"restored {args.folder} as of {made.made}")
    for name, n in made.learners.items():
        print(f"{name} goes on after sample {n}; what it accepted later is not in the backup")
    if not made.has_keys:
        needed = "node.key and token of each learner"
        print(f"keys are not in the backup: put {needed} beside node.pem", file=sys.stderr)
    return 0


def router(args: argparse.Namespace) -> int:
    """Run the router of a mesh until Ctrl-C or SIGTERM."""
    config = folders.read_mesh(args.folder)
    if config.router is None:
        raise ParameterError(f"{args.folder / folders.MESH} must name a router, got none")
    listen = config.router if args.listen is None else Address.parse(args.listen)
    run_router = registry.find(config.transport).run_router
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    print(f"routing at {listen}; Ctrl-C to end", file=sys.stderr)
    run_router(listen, args.folder / folders.ROUTER, config.names, is_over)
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "init": init,
    "up": up,
    "status": status,
    "ui": ui,
    "apply": apply,
    "add": add,
    "remove": remove,
    "rotate-keys": rotate_keys,
    "backup": backup,
    "restore": restore,
    "demo": demo,
    "router": router,
}


def _tell(folder: Path, config: MeshConfig, files: str) -> None:
    """Reload the nodes that run here; say what must be done for others."""
    pid = reload_running(folder)
    if pid is not None:
        print(f"told domkl mesh up (process {pid}) to read it again")
    hosts = {member.address.host for member in config.members}
    if pid is None or len(hosts) > 1:
        print(
            f"elsewhere: copy {files} of each folder to its device, then"
            " systemctl reload 'domkl-node@*'",
            file=sys.stderr,
        )


def _table(args: argparse.Namespace) -> dict[str, Any]:
    """The options as a mesh file would hold them."""
    names = _names(args)
    if args.edges is not None:
        edges = parse_edges(args.edges, names)
    else:
        edges = named_edges(args.topology, names, connect=args.connect, seed=args.seed)
    hosts = _words(args.hosts)
    members = members_at(
        names, hosts, port=args.port, http_host=args.http_host, http_port=args.http_port
    )
    table: dict[str, Any] = {
        "name": args.name, "mode": args.mode, "transport": args.transport, "outside": args.outside,
        "guard": not args.no_guard, "target": _range("--target", args.target),
        "model": _model(args),
        "learners": [
            {"name": m.name, "address": str(m.address), "http": str(m.http)} for m in members
        ],
        "edges": [list(edge) for edge in edges],
    }  # fmt: skip
    if args.input:
        table["inputs"] = [_range("--input", text) for text in args.input]
    if args.router is not None:
        table["router"] = args.router
    if args.horizon is not None:
        table["forecast"] = _forecast(args)
    elif args.lags is not None:
        table["lags"] = _whole("--lags", args.lags)
    return table


def _forecast(args: argparse.Namespace) -> dict[str, Any]:
    """The table [forecast] of a mesh file."""
    horizons = [_whole("--horizon", word) for word in _words(args.horizon)]
    table: dict[str, Any] = {"horizons": horizons}
    if args.lags is not None:
        found = [_whole("--lags", word) for word in _words(args.lags)]
        table["lags"] = list(range(1, found[0] + 1)) if len(found) == 1 else found
    for key in ("calendar", "ahead"):
        if getattr(args, key) is not None:
            table[key] = _words(getattr(args, key))
    for key in ("step", "hold", "season"):
        if getattr(args, key) is not None:
            table[key] = getattr(args, key)
    return table


def _whole(option: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ParameterError(f"{option} must be a whole number, got {word!r}") from None


def _names(args: argparse.Namespace) -> list[str]:
    if args.names is not None and args.learners is not None:
        raise ParameterError("--learners and --names exclude each other")
    if args.names is not None:
        return _words(args.names)
    n_learners = 5 if args.learners is None else args.learners
    if n_learners < 1:
        raise ParameterError(f"learners must be an integer >= 1, got {n_learners}")
    width = len(str(n_learners))
    return [f"learner-{k:0{width}}" for k in range(1, n_learners + 1)]


def _model(args: argparse.Namespace) -> dict[str, Any]:
    model: dict[str, Any] = {
        "algorithm": args.algorithm, "frequencies": args.frequencies, "seed": args.seed,
        "dtype": args.dtype, "linear": args.linear,
        "parameters": dict(_setting(text) for text in args.parameters),
    }  # fmt: skip
    if args.kernels is not None:
        model["kernels"] = [_number("--kernels", word) for word in _words(args.kernels)]
    return model


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"--set must be KEY=VALUE, got {text!r}")
    try:
        return key, float(value)
    except ValueError:
        return key, value


def _range(option: str, text: str) -> dict[str, Any]:
    words = text.rsplit(":", 2)
    if len(words) != 3:
        raise ParameterError(f"{option} must be NAME:LOW:HIGH, such as load:0:100, got {text!r}")
    low, high = (_number(option, word) for word in words[1:])
    return {"name": words[0], "low": low, "high": high}


def _number(option: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ParameterError(f"{option} must hold numbers, got {word!r}") from None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
