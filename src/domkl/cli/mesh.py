"""`domkl mesh`: set up and run a mesh, one process per learner."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from domkl.algorithms.registry import ALGORITHMS
from domkl.cli.mesh_texts import ABOUT
from domkl.errors import ParameterError

SUMMARY = "set up and run learners as processes, on this machine or on devices"
DESCRIPTION = """\
A mesh: every learner is a process of its own, `domkl node`, here or on a device, and speaks with
its neighbors over mutual TLS.

  domkl mesh init --learners 5 --topology ring --target load:0:100 --lags 5 my-mesh
  domkl mesh up my-mesh
  domkl mesh status my-mesh
  domkl mesh demo

docs/ten-devices.md goes through the same on ten devices.
"""
#: the same as in mesh/, which the parser need not load
TOPOLOGY_NAMES = (
    "ring", "ring-with-chords", "path", "star", "tree", "grid", "complete", "random",
)  # fmt: skip
ALGORITHM_NAMES = tuple(each.name for each in ALGORITHMS.values() if each.is_meshable)


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
        made[name].add_argument("folder", metavar="DIR", type=Path, help="the mesh's folder")
    _add_init(made["init"])
    _add_up(made["up"])
    made["status"].add_argument("--json", action="store_true", help="print one JSON object")
    made["add"].add_argument("name", metavar="NAME", help="of the new learner")
    made["add"].add_argument("--edges", metavar="A-B,...", required=True, help="to whom")
    made["add"].add_argument("--host", metavar="H", help="where it runs (default: as the first)")
    made["remove"].add_argument("name", metavar="NAME", help="of the learner")
    made["remove"].add_argument(
        "--edges", metavar="A-B,...", default="", help="new ones, between those it held together"
    )
    made["rotate-keys"].add_argument("names", metavar="NAME", nargs="*", help="default: all")
    made["rotate-keys"].add_argument(
        "--authority", choices=("new", "retire"), help="begin or end the change of the authority"
    )
    for name in ("init", "add", "rotate-keys"):
        made[name].add_argument(
            "--days", metavar="N", type=int, default=365, help="certificates hold (default: 365)"
        )
    made["router"].add_argument(
        "--listen", metavar="HOST:PORT", help="default: the address that mesh.toml has"
    )
    _add_demo(made["demo"])


def _add_init(parser: argparse.ArgumentParser) -> None:
    who = parser.add_argument_group("learners and edges")
    who.add_argument("--learners", metavar="K", type=int, help="how many (default: 5)")
    who.add_argument("--names", metavar="A,B,...", help="or their names")
    who.add_argument(
        "--topology",
        metavar="NAME",
        choices=TOPOLOGY_NAMES,
        default="ring",
        help=f"{', '.join(TOPOLOGY_NAMES)} (default: ring)",
    )
    who.add_argument("--edges", metavar="A-B,...", help="or the edges, by name")
    who.add_argument(
        "--connect", metavar="P", type=float, default=0.4, help="of random: probability (0.4)"
    )
    who.add_argument(
        "--seed", metavar="S", type=int, default=1, help="of random and of the features (1)"
    )
    data = parser.add_argument_group("data, in your units; ranges must be declared")
    data.add_argument("--target", metavar="NAME:LOW:HIGH", required=True, help="what to predict")
    data.add_argument(
        "--input", metavar="NAME:LOW:HIGH", action="append", default=[], help="repeatable"
    )
    data.add_argument(
        "--lags", metavar="S", type=int, help="a series: inputs are its last S values"
    )
    data.add_argument(
        "--outside",
        choices=("clip", "refuse"),
        default="clip",
        help="what to do with a value outside of its range (default: clip)",
    )
    model = parser.add_argument_group("model")
    model.add_argument(
        "--algorithm",
        metavar="NAME",
        choices=ALGORITHM_NAMES,
        default="domkrls",
        help=f"{', '.join(ALGORITHM_NAMES)} (default: domkrls)",
    )
    model.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="parameters",
        action="append",
        default=[],
        help="a parameter of the algorithm, such as forget=0.999; repeatable",
    )
    model.add_argument("--kernels", metavar="B,...", help="bandwidths (default: its own)")
    model.add_argument("--linear", action="store_true", help="add the linear kernel to --kernels")
    model.add_argument("--frequencies", metavar="M", type=int, default=50, help="per kernel (50)")
    model.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    how = parser.add_argument_group("network")
    how.add_argument("--name", metavar="NAME", default="mesh", help="of the mesh (default: mesh)")
    how.add_argument("--mode", choices=("lockstep", "async"), default="lockstep")
    how.add_argument("--transport", choices=("tls", "zenoh"), default="tls")
    how.add_argument("--router", metavar="HOST:PORT", help="of zenoh")
    how.add_argument(
        "--hosts", metavar="H,...", default="127.0.0.1", help="one, or each learner's (127.0.0.1)"
    )
    how.add_argument("--port", metavar="P", type=int, default=21000, help="the first (21000)")
    how.add_argument(
        "--http-host", metavar="H", default="127.0.0.1", help="0.0.0.0 to be seen (127.0.0.1)"
    )
    how.add_argument("--http-port", metavar="P", type=int, default=22000, help="the first (22000)")


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="A,B,...", help="these learners (default: all)")
    parser.add_argument("--restart", action="store_true", help="start again who dies")
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help="samples, dealt out row by row; or 'samples/{name}.csv' for a file each",
    )
    parser.add_argument("--rate", metavar="R", type=float, help="of --csv: samples a second")
    parser.add_argument("--json", action="store_true", help="at the end, print one JSON object")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--learners", metavar="K", type=int, default=10, help="default: 10")
    parser.add_argument("--rate", metavar="R", type=float, default=10.0, help="samples a second")
    parser.add_argument("--seconds", metavar="S", type=float, default=50.0, help="of learning (50)")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="default: 1")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("domkl-out"), help="default: domkl-out"
    )
    parser.add_argument("--keep", action="store_true", help="keep the mesh's folder, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    with _extra():
        from domkl.cli.mesh_actions import ACTIONS

        return ACTIONS[args.verb](args)


@contextmanager
def _extra() -> Iterator[None]:
    """Turn a missing package into one line with the remedy."""
    try:
        yield
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if name == "domkl":
            raise
        extra = "zenoh" if name == "zenoh" else "mesh"
        raise ParameterError(
            f"a mesh needs {name}, which is not installed: pip install 'domkl[{extra}]'"
        ) from None
