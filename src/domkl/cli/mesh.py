"""`domkl mesh`: set up and run a mesh, one process per learner.

Each subcommand is a function; its docstring is the help. Functions import what they need, because
the parser must not wait for it, and because it needs the extra `mesh`.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.algorithms.registry import ALGORITHMS
from domkl.cli.node import add_links
from domkl.cli.options import add_commands, add_fields, made_from, option, repeatable, switch
from domkl.cli.output import add_out_argument, out_folder, outbox, tell
from domkl.errors import ParameterError
from domkl.experiments.options import Plan
from domkl.mesh.config import DAYS, MESH
from domkl.mesh.config.keys import ALGORITHM, ForecastKeys, PlainKeys, keys_of, path_of
from domkl.mesh.config.topology import PAGE_PORT, Layout, parse_edges
from domkl.mesh.operate.parent import require_linux
from domkl.mesh.transports.registry import missing_extra
from domkl.text import counted, parse_lags, parse_names, parse_numbers

if TYPE_CHECKING:
    from domkl.mesh.config.file import MeshConfig

MESHABLE = [each.name for each in ALGORITHMS.values() if each.is_meshable]
SUMMARY = "set up and run learners as processes, on this machine or on devices"
DESCRIPTION = """\
Set up and run a mesh: a network in which each learner is a process, `domkl node`, on this machine
or on a device, and exchanges messages with its neighbors over mutual TLS.

  domkl mesh init --learners 5 --topology ring --target load:0:100 --lags 5 my-mesh
  domkl mesh up my-mesh
  domkl mesh status my-mesh
  domkl mesh demo

docs/howto/ten-devices.md describes a mesh of ten devices.
"""


def init(args: argparse.Namespace) -> int:
    r"""Create the folder of a new mesh.

    It has the config file mesh.toml, which all learners share, a certificate authority, and for
    each learner a folder with its certificate, key and token.

    Pass an algorithm of your own as module:Name. Its module must be importable here and on every
    device: put it into the directory where domkl is started, or install it.

      domkl mesh init --learners 5 --topology ring --target load:0:100 --lags 5 my-mesh
      domkl mesh init --names roof,yard,cellar --edges roof-yard,yard-cellar \
          --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --target power:0:500 \
          --input wind:0:40 --input sun:0:1200 my-mesh
      domkl mesh init --names roof,yard --target PM2.5:0:500 --input TEMP:-20:40 --calendar hour \
          --lags 1,2,3,24 --horizon 1,6,24 --step 1h my-mesh
    """
    from domkl.mesh.config.file import config_of
    from domkl.mesh.config.folder import init_mesh

    config = config_of(_table(args))
    init_mesh(args.folder, config, days=args.days)
    learners, edges = counted(len(config.members), "learner"), counted(len(config.edges), "edge")
    print(f"wrote {args.folder}: {learners}, {edges}, and their keys")
    print(f"next: look at {args.folder / MESH}, then  domkl mesh up {args.folder}")
    return 0


def up(args: argparse.Namespace) -> int:
    """Run all learners of a mesh on this machine.

    Each is a process; a table shows their state. Ctrl-C ends them all. The output of a node is in
    DIR/<learner>/data/node.log.

      domkl mesh up my-mesh                              # samples come by HTTP
      domkl mesh up my-mesh --csv samples.csv --rate 10   # or from a file, dealt out row by row
      domkl mesh up my-mesh --csv 'data/{node}.csv' --time when   # or each from its own, by time
      domkl mesh up my-mesh --mqtt mqtt://localhost --topic 'sensors/{node}' \
--publish 'domkl/{node}'

    A series (lags in mesh.toml) in one file is cut into blocks, one for each learner.
    """
    from domkl.cli import mesh_watch

    return mesh_watch.up(args)


def status(args: argparse.Namespace) -> int:
    """Show the state of the learners.

    Every learner is queried over HTTP: whether it is up, exchanges, learns, and predicts better
    than it would without neighbors. Errors are recent ones, in the target's units.

    The exit code is 0 if all is well, 4 if a learner is down, 5 if one exchanges nothing, and 6 if
    one no longer gets samples or predicts no better than the last value.
    """
    from domkl.cli import mesh_watch

    return mesh_watch.status(args)


def ui(args: argparse.Namespace) -> int:
    """Serve a live page about a mesh.

    The page shows network, errors, predictions, weights, traffic and events. Its server queries the
    nodes with the tokens in DIR, so that their ports can stay closed to browsers. The address is
    printed on standard output.

    If a node listens beyond loopback, where it requires a token, the page requires the token in
    DIR/ui-token.

      domkl mesh ui my-mesh
      domkl mesh ui my-mesh --port 0      # any free port
    """
    from domkl.cli import mesh_watch

    return mesh_watch.ui(args)


def apply(args: argparse.Namespace) -> int:
    """Copy an edited mesh.toml to the learners.

    DIR/mesh.toml is copied to the learners' folders. domkl mesh up does the same when it starts;
    nodes that it runs are reloaded, or restarted where necessary. On a device, copy the files and
    restart the node.

    Changes of queue, timing, guard, forget and other numeric parameters of the algorithm keep what
    was learned. A model with which a learner here could not continue is refused, and nothing is
    copied.

      domkl mesh apply my-mesh
    """
    from domkl.mesh.config.folder import apply_mesh

    config, copied = apply_mesh(args.folder)
    if not copied:
        print("nothing to copy: mesh.toml was not edited since it was copied last")
        return 0
    print(f"copied mesh.toml to {', '.join(copied)}")
    return _tell(args.folder, config, MESH)


def add(args: argparse.Namespace) -> int:
    """Add a learner.

    The folder of the learner is created, and the new mesh.toml is written to all folders. Nodes
    that `domkl mesh up` runs are reloaded. On a device, copy the files and send SIGHUP to the node.

      domkl mesh add my-mesh attic --edges attic-roof,attic-yard --host 10.0.0.4
    """
    from domkl.mesh.config.folder import add_learner, read_mesh
    from domkl.mesh.config.settings import next_member

    config = read_mesh(args.folder)
    edges = parse_edges(args.edges, [*config.names, args.name])
    member = next_member(config.members, args.name, args.host or config.members[0].address.host)
    new = add_learner(args.folder, member, edges, days=args.days)
    near = ", ".join(new.neighbors(args.name))
    print(f"added {args.name} at {member.address}, neighbors {near}")
    return _tell(args.folder, new, MESH)


def remove(args: argparse.Namespace) -> int:
    """Remove a learner.

    Its edges are removed as well. Its folder is kept in DIR/removed, without the key.

      domkl mesh remove my-mesh yard --edges roof-cellar
    """
    from domkl.mesh.config.folder import read_mesh, remove_learner

    edges = parse_edges(args.edges or "", read_mesh(args.folder).names)
    new, kept = remove_learner(args.folder, args.name, edges)
    where = "" if kept is None else f"; its folder is now {kept}, without the key"
    print(f"removed {args.name}{where}")
    return _tell(args.folder, new, MESH)


def rotate_keys(args: argparse.Namespace) -> int:
    """Renew keys and certificates.

    All learners, or the named ones, get new keys, certificates and tokens. Whoever asks a node
    over HTTP with a token needs the new one once the node has read it; --keep-tokens keeps them.
    A page that domkl mesh ui serves takes its new token at its next start.

    Changing the authority takes three steps; after each of them, copy the files to the devices:
      domkl mesh rotate-keys my-mesh --authority new      # all trust the old and the new one
      domkl mesh rotate-keys my-mesh                      # all get certificates of the new one
      domkl mesh rotate-keys my-mesh --authority retire   # the old one is no longer trusted
    """
    from domkl.mesh.config import folder as folders

    if args.authority and args.names:
        raise ParameterError(f"--authority is for all learners, got {args.names[0]!r}")
    if args.authority == "new":
        config = folders.begin_authority(args.folder)
        print("made a new authority; both are trusted until  rotate-keys --authority retire")
    elif args.authority == "retire":
        config = folders.retire_authority(args.folder)
        print("the old authority is not trusted any more")
    else:
        config = folders.rotate_keys(
            args.folder, args.names, days=args.days, keep_tokens=args.keep_tokens
        )
        print(f"new keys, good for {args.days} days: {', '.join(args.names or config.names)}")
    return _tell(args.folder, config, "ca.pem, node.pem, node.key and token")


def backup(args: argparse.Namespace) -> int:
    """Write a mesh or a learner to an archive, while nodes run.

    The archive is new. It contains mesh.toml, certificates, and the state and write-ahead log of
    each learner. Private keys and tokens are included only with --with-keys: whoever has such an
    archive can join the mesh.

      domkl mesh backup my-mesh my-mesh.tar.gz
      domkl mesh backup /var/lib/domkl/roof roof.tar.gz
    """
    from domkl.mesh.operate.backup import back_up

    made = back_up(args.folder, args.archive, with_keys=args.with_keys)
    samples = ", ".join(f"{name} up to sample {n}" for name, n in made.learners.items())
    print(f"wrote {args.archive}: {samples or 'no learner has data here'}")
    if made.has_keys:
        print("it holds private keys: whoever has it can join the mesh", file=sys.stderr)
    else:
        print("keys and tokens are not in it; --with-keys adds them", file=sys.stderr)
    return 0


def restore(args: argparse.Namespace) -> int:
    """Restore an archive.

    Nothing is overwritten: the folder must not contain data, other files in it must be the same as
    in the archive, and its keys are kept. Stop the node first. Samples that were accepted after the
    backup are not in it. Files with names that no backup has, or of a size that none can have, are
    refused.

      domkl mesh restore my-mesh.tar.gz my-mesh
    """
    from domkl.mesh.operate.backup import restore as restore_archive

    made = restore_archive(args.archive, args.folder)
    print(f"restored {args.folder} as of {made.made}")
    for name, n in made.learners.items():
        print(f"{name} goes on after sample {n}; what it accepted later is not in the backup")
    if not made.has_keys:
        needed = "node.key and token of each learner"
        print(f"keys are not in the backup: put {needed} beside node.pem", file=sys.stderr)
    return 0


def demo(args: argparse.Namespace) -> int:
    """Run ten processes, kill one, cut one off, and measure what happens.

    The learners learn the shipped traffic series. One is killed and started again, one is cut off
    the network and connected again; errors are compared with those of a simulation without faults.
    Prints a table and draws a figure.
    """
    from domkl.experiments.mesh_demo import as_records, as_table, run_demo, write_figure

    def say(line: str) -> None:
        args.interrupts.check()
        print(line, file=sys.stderr, flush=True)

    with outbox(out_folder(args)) as box, tempfile.TemporaryDirectory(prefix="domkl-demo-") as name:
        record = run_demo(Path(name), made_from(Plan, args), say)
        say("simulating the same without faults")
        results = as_records(record)
        text = json.dumps(results, indent=2, allow_nan=False) + "\n"
        box.add_picture(lambda path: write_figure(path, record))
        box.add(".json", lambda path: path.write_text(text))
        paths = box.publish("mesh-demo", args.interrupts)
        if args.keep:
            paths.append(paths[0].with_suffix(""))
            shutil.copytree(name, paths[-1])
    print(text if args.json else as_table(results))
    tell(paths)
    return 0


def router(args: argparse.Namespace) -> int:
    """Run a router for learners that cannot reach each other.

    It is for a mesh whose transport uses one (zenoh), and listens at the address in mesh.toml.
    """
    from domkl.cli import mesh_watch

    return mesh_watch.router(args)


#: the subcommands in the order of the help
VERBS: tuple[Callable[[argparse.Namespace], int], ...] = (
    init, up, status, ui, apply, add, remove, rotate_keys, backup, restore, demo, router,
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    made = add_commands(parser, VERBS)
    for name in ("init", "up", "status", "apply", "add", "remove", "rotate-keys", "router"):
        made[name].add_argument("folder", metavar="DIR", type=Path, help="folder of the mesh")
    of_both = "folder of the mesh, or of one learner"
    archive: dict[str, Any] = {"metavar": "FILE", "type": Path, "help": "the archive"}
    made["backup"].add_argument("folder", metavar="DIR", type=Path, help=of_both)
    made["backup"].add_argument("archive", **archive)
    switch(made["backup"], "--with-keys", "include private keys and tokens")
    made["restore"].add_argument("archive", **archive)
    made["restore"].add_argument("folder", metavar="DIR", type=Path, help=of_both)
    _add_init(made["init"])
    _add_up(made["up"])
    switch(made["status"], "--json", "print one JSON object")
    switch(made["status"], "--watch", "repeat every second, until Ctrl-C")
    here = "folder of the mesh (default: this one)"
    made["ui"].add_argument(
        "folder", metavar="DIR", type=Path, nargs="?", default=Path(), help=here
    )
    option(made["ui"], "--port", "P", "port on 127.0.0.1; 0 for any free one", default=PAGE_PORT)
    switch(made["ui"], "--require-token", "require the token in DIR/ui-token on loopback as well")
    made["add"].add_argument("name", metavar="NAME", help="name of the new learner")
    option(made["add"], "--edges", "A-B,...", "its edges, by name", required=True)
    option(made["add"], "--host", "H", "host where it runs (default: the first learner's)")
    made["remove"].add_argument("name", metavar="NAME", help="name of the learner")
    option(made["remove"], "--edges", "A-B,...", "new edges between the other learners")
    renew = made["rotate-keys"]
    renew.add_argument("names", metavar="NAME", nargs="*", help="learners (default: all)")
    switch(renew, "--keep-tokens", "renew keys and certificates only")
    changes = ("new", "retire")
    option(renew, "--authority", None, "begin or end a change of the authority", choices=changes)
    for name in ("init", "add", "rotate-keys"):
        option(made[name], "--days", "N", "days that certificates are valid", default=DAYS)
    where = "address to listen at (default: the one in mesh.toml)"
    option(made["router"], "--listen", "HOST:PORT", where)
    _add_demo(made["demo"])


def _add_init(parser: argparse.ArgumentParser) -> None:
    add_fields(parser.add_argument_group("learners and edges"), Layout, "learners")
    data = parser.add_argument_group("data, with ranges in your own units")
    option(data, "--target", "NAME:LOW:HIGH", "value to predict", required=True)
    repeatable(data, "--input", "NAME:LOW:HIGH", "an input")
    lags = "for a time series: use its last S values as inputs; for forecasts, also 1,2,3,24"
    option(data, "--lags", "S", lags)
    _add_keys(data, PlainKeys, "data")
    ahead = parser.add_argument_group("forecasts, for samples that have a time")
    option(ahead, "--horizon", "H,...", "steps ahead; allows --lags and --input together")
    _add_keys(ahead, ForecastKeys, "forecast")
    model = parser.add_argument_group("model")
    own = f"{', '.join(MESHABLE)}, or your own as module:Name"
    option(model, "--algorithm", "NAME", own, default=ALGORITHM)
    setting = "set a parameter of the algorithm, such as forget=0.999"
    repeatable(model, "--set", "KEY=VALUE", setting, dest="parameters")
    bandwidths = "bandwidths of Gaussian kernels (default: the algorithm's own)"
    option(model, "--kernels", "B,...", bandwidths)
    _add_keys(model, PlainKeys, "model")
    network = parser.add_argument_group("network")
    _add_keys(network, PlainKeys, "network")
    switch(network, "--no-guard", "let neighbors move nodes as far as they say")
    option(network, "--router", "HOST:PORT", "router to use, for zenoh")
    add_fields(network, Layout, "network")


def _add_keys(group: argparse._ArgumentGroup, kind: type, name: str) -> None:
    """Declare an option for each key of the mesh file in this group; lists are words."""
    for each in keys_of(kind, group=name):
        word, told = f"--{path_of(each).rpartition('.')[2]}", each.metadata
        if isinstance(each.default, bool):
            switch(group, word, told["help"])
        else:
            more = {"default": each.default or None, "choices": told["choices"]}
            option(group, word, told["metavar"], told["help"], **more)


def _add_up(parser: argparse.ArgumentParser) -> None:
    option(parser, "--only", "A,B,...", "run these learners only (default: all)")
    switch(parser, "--restart", "restart nodes that have ended")
    links = parser.add_argument_group(
        "samples and predictions of all learners",
        "In all of them {node} stands for the learner: 'data/{node}.csv'. Without it, the rows of"
        " one --csv are dealt out. --publish takes a topic.",
    )
    add_links(links, links, without=("stdin", "rows"))
    switch(parser, "--json", "at the end, print one JSON object")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    add_fields(parser, Plan)
    add_out_argument(parser)
    switch(parser, "--keep", "keep the folder of the mesh as well")
    switch(parser, "--json", "print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    require_linux()
    try:
        return int(args.verb(args))
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None


def _tell(folder: Path, config: "MeshConfig", files: str) -> int:
    """Reload the nodes that run here; say what must be done for others."""
    from domkl.mesh.operate.launcher import reload_running

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
    return 0


def _table(args: argparse.Namespace) -> dict[str, Any]:
    """The options as a mesh file would hold them."""
    from domkl.mesh.config.settings import members_at

    layout = made_from(Layout, args)
    given = _given(args, PlainKeys) | {"model.seed": layout.seed, "guard": not args.no_guard}
    table = {key: value for key, value in given.items() if "." not in key}
    model = {key.removeprefix("model."): value for key, value in given.items() if "." in key}
    model |= {"algorithm": args.algorithm, "parameters": dict(map(_setting, args.parameters))}
    if args.kernels is not None:
        words = parse_names(args.kernels) or ()
        model["kernels"] = [_number("--kernels", word) for word in words]
    members = members_at(
        layout.called(), parse_names(layout.hosts) or (), port=layout.port,
        http_host=layout.http_host, http_port=layout.http_port,
    )  # fmt: skip
    table |= {
        "target": _range("--target", args.target), "model": model,
        "learners": [
            {"name": m.name, "address": str(m.address), "http": str(m.http)} for m in members
        ],
        "edges": [list(edge) for edge in layout.joined()],
    }  # fmt: skip
    if args.input:
        table["inputs"] = [_range("--input", text) for text in args.input]
    if args.router is not None:
        table["router"] = args.router
    if args.horizon is not None:
        table["forecast"] = _forecast(args)
    elif args.lags is not None:
        (table["lags"],) = parse_numbers("--lags", args.lags, 0)
    return table


def _given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The options that `_add_keys` declared for a class, by their place in the file."""
    known = [path_of(each) for each in keys_of(kind) if each.metadata["group"] is not None]
    given = {path: getattr(args, path.rpartition(".")[2]) for path in known}
    return {path: value for path, value in given.items() if value is not None}


def _forecast(args: argparse.Namespace) -> dict[str, Any]:
    """The table [forecast] of a mesh file."""
    table = _given(args, ForecastKeys)
    for key in table.keys() & {"calendar", "ahead"}:
        table[key] = list(parse_names(table[key]) or ())
    table["horizons"] = list(parse_numbers("--horizon", args.horizon, 0))
    if args.lags is not None:
        table["lags"] = list(parse_lags("--lags", args.lags))
    return table


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"--set must be KEY=VALUE, got {text!r}")
    try:
        return key, float(value)
    except ValueError:
        return key, value


def _range(flag: str, text: str) -> dict[str, Any]:
    words = text.rsplit(":", 2)
    if len(words) != 3:
        raise ParameterError(f"{flag} must be NAME:LOW:HIGH, such as load:0:100, got {text!r}")
    low, high = (_number(flag, word) for word in words[1:])
    return {"name": words[0], "low": low, "high": high}


def _number(flag: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ParameterError(f"{flag} must hold numbers, got {word!r}") from None
