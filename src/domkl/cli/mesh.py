"""`domkl mesh`: set up and run a mesh, one process per learner."""

import argparse
from pathlib import Path

from domkl.algorithms.registry import ALGORITHMS
from domkl.mesh.config.topology import TOPOLOGIES
from domkl.mesh.transports.registry import TRANSPORTS, missing_extra

SUMMARY = "set up and run learners as processes, on this machine or on devices"
DESCRIPTION = """\
A mesh: every learner is a process of its own, `domkl node`, on this machine or on a device, and
exchanges messages with its neighbors over mutual TLS.

  domkl mesh init --learners 5 --topology ring --target load:0:100 --lags 5 my-mesh
  domkl mesh up my-mesh
  domkl mesh status my-mesh
  domkl mesh demo

docs/ten-devices.md does the same on ten devices.
"""
_INIT = """\
Make the folder of a new mesh: a commented mesh.toml that all learners share, a certificate
authority, and for every learner a folder with its certificate, key and token.

An algorithm of your own is given as module:Name; its module must be importable here and on every
device: put it into the directory where domkl is started, or install it.

  domkl mesh init --learners 5 --topology ring --target load:0:100 --lags 5 my-mesh
  domkl mesh init --names roof,yard,cellar --edges roof-yard,yard-cellar \\
      --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --target power:0:500 \\
      --input wind:0:40 --input sun:0:1200 my-mesh
"""
_UP = """\
Run all learners of a mesh on this machine, each as a process, and show a table of their state;
Ctrl-C ends them all. The output of a node is in DIR/<learner>/data/node.log.

  domkl mesh up my-mesh                              # samples come by HTTP
  domkl mesh up my-mesh --csv samples.csv --rate 10   # or from a file, dealt out row by row
"""
_STATUS = """\
Ask every learner for its state over HTTP. Exit code 0 if all are up, 4 if any is not.
"""
_ADD = """\
Add a learner and its edges: make its folder, and write the new mesh.toml to all folders. Nodes
that `domkl mesh up` runs are reloaded; on a device, copy the files and send SIGHUP to the node.

  domkl mesh add my-mesh attic --edges attic-roof,attic-yard --host 10.0.0.4
"""
_REMOVE = """\
Remove a learner and its edges. Its folder is kept in DIR/removed, without the key.

  domkl mesh remove my-mesh yard --edges roof-cellar
"""
_ROTATE = """\
Give all learners, or the named ones, new keys and certificates.

To change the authority takes three steps; after each of them copy the files to the devices:
  domkl mesh rotate-keys my-mesh --authority new      # all trust the old and the new one
  domkl mesh rotate-keys my-mesh                      # all get certificates of the new one
  domkl mesh rotate-keys my-mesh --authority retire   # the old one is not trusted any more
"""
_DEMO = """\
Run ten learners as processes on the shipped traffic series; kill one and start it again, cut one
off the network and connect it again; compare with a simulation without faults. Prints a table and
draws a figure.
"""
_ROUTER = """\
Run the router of a mesh whose transport uses one (zenoh), at the address in mesh.toml.
"""

ABOUT = {
    "init": ("make the folder of a new mesh", _INIT),
    "up": ("run all learners of a mesh on this machine", _UP),
    "status": ("show the state of the learners", _STATUS),
    "add": ("add a learner", _ADD),
    "remove": ("remove a learner", _REMOVE),
    "rotate-keys": ("renew keys and certificates", _ROTATE),
    "demo": ("run ten processes, kill one, cut one off, and measure what happens", _DEMO),
    "router": ("run a router for learners that cannot reach each other", _ROUTER),
}
MESHABLE = [each.name for each in ALGORITHMS.values() if each.is_meshable]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    made = {}
    for name, (summary, description) in ABOUT.items():
        made[name] = commands.add_parser(
            name,
            help=summary,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made[name].set_defaults(verb=name)
    for name in ("init", "up", "status", "add", "remove", "rotate-keys", "router"):
        made[name].add_argument("folder", metavar="DIR", type=Path, help="folder of the mesh")
    _add_init(made["init"])
    _add_up(made["up"])
    made["status"].add_argument("--json", action="store_true", help="print one JSON object")
    made["add"].add_argument("name", metavar="NAME", help="name of the new learner")
    made["add"].add_argument("--edges", metavar="A-B,...", required=True, help="its edges, by name")
    made["add"].add_argument(
        "--host", metavar="H", help="host where it runs (default: the first learner's)"
    )
    made["remove"].add_argument("name", metavar="NAME", help="name of the learner")
    made["remove"].add_argument(
        "--edges",
        metavar="A-B,...",
        default="",
        help="new edges between the others, if they need any",
    )
    made["rotate-keys"].add_argument(
        "names", metavar="NAME", nargs="*", help="learners (default: all)"
    )
    made["rotate-keys"].add_argument(
        "--authority", choices=("new", "retire"), help="begin or end a change of the authority"
    )
    for name in ("init", "add", "rotate-keys"):
        made[name].add_argument(
            "--days",
            metavar="N",
            type=int,
            default=365,
            help="days that certificates are valid (default: 365)",
        )
    made["router"].add_argument(
        "--listen", metavar="HOST:PORT", help="address to listen at (default: the one in mesh.toml)"
    )
    _add_demo(made["demo"])


def _add_init(parser: argparse.ArgumentParser) -> None:
    who = parser.add_argument_group("learners and edges")
    who.add_argument("--learners", metavar="K", type=int, help="number of learners (default: 5)")
    who.add_argument(
        "--names", metavar="A,B,...", help="names of the learners, instead of --learners"
    )
    who.add_argument(
        "--topology",
        metavar="NAME",
        choices=TOPOLOGIES,
        default="ring",
        help=f"{', '.join(TOPOLOGIES)} (default: ring)",
    )
    who.add_argument("--edges", metavar="A-B,...", help="edges by name, instead of --topology")
    who.add_argument(
        "--connect",
        metavar="P",
        type=float,
        default=0.4,
        help="probability of an edge, for random (default: 0.4)",
    )
    who.add_argument(
        "--seed",
        metavar="S",
        type=int,
        default=1,
        help="seed of random topologies and of the features (default: 1)",
    )
    data = parser.add_argument_group("data, with ranges in your own units")
    data.add_argument("--target", metavar="NAME:LOW:HIGH", required=True, help="value to predict")
    data.add_argument(
        "--input", metavar="NAME:LOW:HIGH", action="append", default=[], help="an input; repeatable"
    )
    data.add_argument(
        "--lags", metavar="S", type=int, help="for a time series: the inputs are its last S values"
    )
    data.add_argument(
        "--outside",
        choices=("clip", "refuse"),
        default="clip",
        help="what to do with a value outside its range (default: clip)",
    )
    model = parser.add_argument_group("model")
    model.add_argument(
        "--algorithm",
        metavar="NAME",
        default="domkrls",
        help=f"{', '.join(MESHABLE)}, or your own as module:Name (default: domkrls)",
    )
    model.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="parameters",
        action="append",
        default=[],
        help="set a parameter of the algorithm, such as forget=0.999; repeatable",
    )
    model.add_argument(
        "--kernels",
        metavar="B,...",
        help="bandwidths of Gaussian kernels (default: the algorithm's own)",
    )
    model.add_argument("--linear", action="store_true", help="add the linear kernel to --kernels")
    model.add_argument(
        "--frequencies",
        metavar="M",
        type=int,
        default=50,
        help="frequencies per kernel (default: 50)",
    )
    model.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    how = parser.add_argument_group("network")
    how.add_argument(
        "--name", metavar="NAME", default="mesh", help="name of the mesh (default: mesh)"
    )
    how.add_argument("--mode", choices=("lockstep", "async"), default="lockstep")
    how.add_argument("--transport", choices=tuple(TRANSPORTS), default="tls")
    how.add_argument("--router", metavar="HOST:PORT", help="router to use, for zenoh")
    how.add_argument(
        "--hosts",
        metavar="H,...",
        default="127.0.0.1",
        help="one host, or one per learner (default: 127.0.0.1)",
    )
    how.add_argument(
        "--port", metavar="P", type=int, default=21000, help="first port (default: 21000)"
    )
    how.add_argument(
        "--http-host",
        metavar="H",
        default="127.0.0.1",
        help="host for HTTP; 0.0.0.0 for access from elsewhere (default: 127.0.0.1)",
    )
    how.add_argument(
        "--http-port",
        metavar="P",
        type=int,
        default=22000,
        help="first port for HTTP (default: 22000)",
    )


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="A,B,...", help="run these learners only (default: all)")
    parser.add_argument("--restart", action="store_true", help="start nodes again that have ended")
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help="samples, dealt out row by row; or 'samples/{name}.csv' for one file per learner",
    )
    parser.add_argument("--rate", metavar="R", type=float, help="samples a second of --csv")
    parser.add_argument("--json", action="store_true", help="at the end, print one JSON object")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--learners", metavar="K", type=int, default=10, help="number of learners (default: 10)"
    )
    parser.add_argument(
        "--rate", metavar="R", type=float, default=10.0, help="samples a second (default: 10)"
    )
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=50.0, help="duration (default: 50)"
    )
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="seed (default: 1)")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("domkl-out"),
        help="output folder (default: domkl-out)",
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder of the mesh as well")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    try:
        from domkl.cli.mesh_actions import ACTIONS
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return ACTIONS[args.verb](args)
