"""`domkl mesh`: set up and run a mesh, one process per learner."""

import argparse
from pathlib import Path
from typing import Any

from domkl.algorithms.registry import ALGORITHMS
from domkl.cli.options import option, repeatable, switch
from domkl.cli.output import add_out_argument
from domkl.graphs.kinds import PLAIN
from domkl.mesh.operate.parent import require_linux
from domkl.mesh.transports.registry import TRANSPORTS, missing_extra

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
_INIT = """\
Create the folder of a new mesh: the config file mesh.toml, which all learners share, a certificate
authority, and for each learner a folder with its certificate, key and token.

Pass an algorithm of your own as module:Name. Its module must be importable here and on every
device: put it into the directory where domkl is started, or install it.

  domkl mesh init --learners 5 --topology ring --target load:0:100 --lags 5 my-mesh
  domkl mesh init --names roof,yard,cellar --edges roof-yard,yard-cellar \\
      --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --target power:0:500 \\
      --input wind:0:40 --input sun:0:1200 my-mesh
  domkl mesh init --names roof,yard --target PM2.5:0:500 --input TEMP:-20:40 --calendar hour \\
      --lags 1,2,3,24 --horizon 1,6,24 --step 1h my-mesh
"""
_UP = """\
Run all learners of a mesh on this machine, each as a process, and show a table of their state;
Ctrl-C ends them all. The output of a node is in DIR/<learner>/data/node.log.

  domkl mesh up my-mesh                              # samples come by HTTP
  domkl mesh up my-mesh --csv samples.csv --rate 10   # or from a file, dealt out row by row
  domkl mesh up my-mesh --csv 'data/{node}.csv' --time when   # or each from its own, by time
  domkl mesh up my-mesh --mqtt mqtt://localhost --topic 'sensors/{node}' --publish 'domkl/{node}'

A series (lags in mesh.toml) in one file is cut into blocks, one for each learner.
"""
_STATUS = """\
Query every learner over HTTP, and report whether it is up, exchanges, learns, and predicts better
than it would without neighbors. Errors are recent ones, in the target's units.

The exit code is 0 if all is well, 4 if a learner is down, 5 if one exchanges nothing, and 6 if one
no longer gets samples or predicts no better than the last value.
"""
_UI = """\
Serve a live page about a mesh on this machine: network, errors, predictions, weights, traffic,
events. It queries the nodes with the tokens in DIR, so that their ports can stay closed to
browsers. The address is printed on standard output.

If a node listens beyond loopback, where it requires a token, the page requires the token in
DIR/ui-token.

  domkl mesh ui my-mesh
  domkl mesh ui my-mesh --port 0      # any free port
"""
_APPLY = """\
Copy an edited DIR/mesh.toml to the learners' folders. domkl mesh up does the same when it starts;
nodes that it runs are reloaded, or restarted where necessary. On a device, copy the files and
restart the node.

Changes of queue, timing, guard, forget and other numeric parameters of the algorithm keep what was
learned. A model with which a learner here could not continue is refused, and nothing is copied.

  domkl mesh apply my-mesh
"""
_ADD = """\
Add a learner and its edges: create its folder, and write the new mesh.toml to all folders. Nodes
that `domkl mesh up` runs are reloaded. On a device, copy the files and send SIGHUP to the node.

  domkl mesh add my-mesh attic --edges attic-roof,attic-yard --host 10.0.0.4
"""
_REMOVE = """\
Remove a learner and its edges. Its folder is kept in DIR/removed, without the key.

  domkl mesh remove my-mesh yard --edges roof-cellar
"""
_ROTATE = """\
Give all learners, or the named ones, new keys and certificates.

Changing the authority takes three steps; after each of them, copy the files to the devices:
  domkl mesh rotate-keys my-mesh --authority new      # all trust the old and the new one
  domkl mesh rotate-keys my-mesh                      # all get certificates of the new one
  domkl mesh rotate-keys my-mesh --authority retire   # the old one is no longer trusted
"""
_DEMO = """\
Run ten learners as processes on the shipped traffic series; kill one and start it again, cut one
off the network and connect it again; compare with a simulation without faults. Prints a table and
draws a figure.
"""
_BACKUP = """\
Write the folder of a mesh, or of one learner, to a new archive; nodes may keep running. It contains
mesh.toml, certificates, and the state and log of each learner. Private keys and tokens are
included only with --with-keys: whoever has such an archive can join the mesh.

  domkl mesh backup my-mesh my-mesh.tar.gz
  domkl mesh backup /var/lib/domkl/roof roof.tar.gz
"""
_RESTORE = """\
Restore a backup to a folder. Nothing is overwritten: the folder must not contain data, other files
in it must be the same as in the archive, and its keys are kept. Stop the node first. Samples that
were accepted after the backup are not in it.

  domkl mesh restore my-mesh.tar.gz my-mesh
"""
_ROUTER = """\
Run the router of a mesh whose transport uses one (zenoh), at the address in mesh.toml.
"""

ABOUT = {
    "init": ("create the folder of a new mesh", _INIT),
    "up": ("run all learners of a mesh on this machine", _UP),
    "status": ("show the state of the learners", _STATUS),
    "ui": ("serve a live page about a mesh", _UI),
    "apply": ("copy an edited mesh.toml to the learners", _APPLY),
    "add": ("add a learner", _ADD),
    "remove": ("remove a learner", _REMOVE),
    "rotate-keys": ("renew keys and certificates", _ROTATE),
    "backup": ("write a mesh or a learner to an archive, while nodes run", _BACKUP),
    "restore": ("restore an archive", _RESTORE),
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
    option(made["ui"], "--port", "P", "port on 127.0.0.1; 0 for any free one", default=22999)
    switch(made["ui"], "--require-token", "require the token in DIR/ui-token on loopback as well")
    made["add"].add_argument("name", metavar="NAME", help="name of the new learner")
    option(made["add"], "--edges", "A-B,...", "its edges, by name", required=True)
    option(made["add"], "--host", "H", "host where it runs (default: the first learner's)")
    made["remove"].add_argument("name", metavar="NAME", help="name of the learner")
    option(made["remove"], "--edges", "A-B,...", "new edges between the other learners")
    renew = made["rotate-keys"]
    renew.add_argument("names", metavar="NAME", nargs="*", help="learners (default: all)")
    changes = ("new", "retire")
    option(renew, "--authority", None, "begin or end a change of the authority", choices=changes)
    for name in ("init", "add", "rotate-keys"):
        option(made[name], "--days", "N", "days that certificates are valid", default=365)
    where = "address to listen at (default: the one in mesh.toml)"
    option(made["router"], "--listen", "HOST:PORT", where)
    _add_demo(made["demo"])


def _add_init(parser: argparse.ArgumentParser) -> None:
    who = parser.add_argument_group("learners and edges")
    option(who, "--learners", "K", "number of learners (default: 5)", type=int)
    option(who, "--names", "A,B,...", "names of the learners, instead of --learners")
    option(who, "--topology", "NAME", ", ".join(PLAIN), default="ring", choices=PLAIN)
    option(who, "--edges", "A-B,...", "edges by name, instead of --topology")
    option(who, "--connect", "P", "probability of an edge, for random", default=0.4)
    option(who, "--seed", "S", "seed of random topologies and of the features", default=1)
    data = parser.add_argument_group("data, with ranges in your own units")
    option(data, "--target", "NAME:LOW:HIGH", "value to predict", required=True)
    repeatable(data, "--input", "NAME:LOW:HIGH", "an input")
    lags = "for a time series: use its last S values as inputs; for forecasts, also 1,2,3,24"
    option(data, "--lags", "S", lags)
    option(
        data, "--outside", None, "what to do with a value outside its range",
        default="clip", choices=("clip", "refuse"),
    )  # fmt: skip
    ahead = parser.add_argument_group("forecasts, for samples that have a time")
    option(ahead, "--horizon", "H,...", "steps ahead; allows --lags and --input together")
    option(ahead, "--step", "D", "step of the clock, such as 1h or 30min (default: 1h)")
    option(ahead, "--calendar", "NAME,...", "inputs from the time: hour, weekday, yearday")
    option(ahead, "--ahead", "NAME,...", "inputs that are known ahead, such as a weather forecast")
    hold = "how long the last known value replaces a missing one (default: 24h)"
    option(ahead, "--hold", "D", hold)
    season = "period of the seasonal naive forecast to compare with (default: 24h)"
    option(ahead, "--season", "D", season)
    model = parser.add_argument_group("model")
    own = f"{', '.join(MESHABLE)}, or your own as module:Name"
    option(model, "--algorithm", "NAME", own, default="domkrls")
    setting = "set a parameter of the algorithm, such as forget=0.999"
    repeatable(model, "--set", "KEY=VALUE", setting, dest="parameters")
    bandwidths = "bandwidths of Gaussian kernels (default: the algorithm's own)"
    option(model, "--kernels", "B,...", bandwidths)
    switch(model, "--linear", "add the linear kernel to --kernels")
    option(model, "--frequencies", "M", "frequencies per kernel", default=50)
    numbers = ("float64", "float32")
    option(model, "--dtype", None, "type of numbers", default="float64", choices=numbers)
    how = parser.add_argument_group("network")
    option(how, "--name", "NAME", "name of the mesh", default="mesh")
    modes = ("lockstep", "async")
    option(
        how, "--mode", None, "whether rounds wait for neighbors", default=modes[0], choices=modes
    )
    option(how, "--transport", None, "how frames are moved", default="tls", choices=[*TRANSPORTS])
    switch(how, "--no-guard", "do not ignore neighbors that seem to send false values")
    option(how, "--router", "HOST:PORT", "router to use, for zenoh")
    option(how, "--hosts", "H,...", "one host, or one per learner", default="127.0.0.1")
    option(how, "--port", "P", "first port", default=21000)
    seen = "host for HTTP; 0.0.0.0 for access from elsewhere"
    option(how, "--http-host", "H", seen, default="127.0.0.1")
    option(how, "--http-port", "P", "first port for HTTP", default=22000)


def _add_up(parser: argparse.ArgumentParser) -> None:
    option(parser, "--only", "A,B,...", "run these learners only (default: all)")
    switch(parser, "--restart", "restart nodes that have ended")
    files = "samples, dealt out row by row; or 'samples/{node}.csv' for one file per learner"
    option(parser, "--csv", "FILE", files)
    times = "for forecasts: column of --csv with the time, or year,month,day,hour"
    option(parser, "--time", "COLUMN", times)
    option(parser, "--nodes", "COLUMN", "for forecasts: column of --csv with the learner of a row")
    option(parser, "--rate", "R", "samples per second of --csv", type=float)
    node = "; {node} stands for the learner"
    broker = "broker for --topic and --publish: mqtt://user:password@host:port"
    option(parser, "--mqtt", "URL", broker)
    option(parser, "--topic", "T", f"samples from this topic of --mqtt{node}")
    option(parser, "--publish", "T", f"predictions to this topic of --mqtt{node}")
    option(parser, "--webhook", "URL", f"POST each prediction to this address{node}")
    switch(parser, "--json", "at the end, print one JSON object")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    option(parser, "--learners", "K", "number of learners", default=10)
    option(parser, "--rate", "R", "samples per second", default=10.0)
    option(parser, "--seconds", "S", "duration", default=50.0)
    option(parser, "--seed", "S", "seed of the features", default=1)
    add_out_argument(parser)
    switch(parser, "--keep", "keep the folder of the mesh as well")
    switch(parser, "--json", "print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    require_linux()
    try:
        from domkl.cli.mesh_actions import ACTIONS
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return ACTIONS[args.verb](args)
