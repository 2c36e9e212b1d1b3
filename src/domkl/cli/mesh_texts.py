"""What `domkl mesh COMMAND --help` says: a summary and a description of each."""

_INIT = """\
Make the folder of a new mesh: one commented mesh.toml that all learners agree on, an authority
of its own, and for every learner a folder with certificate, key and token.

  domkl mesh init --learners 5 --topology ring --target load:0:100 --lags 5 my-mesh
  domkl mesh init --names roof,yard,cellar --edges roof-yard,yard-cellar \\
      --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --target power:0:500 \\
      --input wind:0:40 --input sun:0:1200 my-mesh
"""
_UP = """\
Run all learners of a mesh on this machine, each as a process, with a table of how they are
doing; Ctrl-C ends them all. What a node prints is in DIR/<learner>/data/node.log.

  domkl mesh up my-mesh                              # samples come by HTTP
  domkl mesh up my-mesh --csv samples.csv --rate 10   # or from a file, dealt out row by row
"""
_STATUS = """\
Ask every learner over HTTP how it is doing. Exit code 0 if all are up, 4 if any is not.
"""
_ADD = """\
Add a learner and its edges: a new folder for it, and the new mesh.toml in all folders. Nodes
that `domkl mesh up` runs take it in at once; on a device, copy the files, then SIGHUP.

  domkl mesh add my-mesh attic --edges attic-roof,attic-yard --host 10.0.0.4
"""
_REMOVE = """\
Take a learner out, with its edges. Its folder is kept in DIR/removed, without the key.

  domkl mesh remove my-mesh yard --edges roof-cellar
"""
_ROTATE = """\
Give all learners, or those that are named, new keys and certificates.

A new authority comes in three steps; after each of them the files go to the devices:
  domkl mesh rotate-keys my-mesh --authority new      # all believe the old and the new one
  domkl mesh rotate-keys my-mesh                      # all get certificates of the new one
  domkl mesh rotate-keys my-mesh --authority retire   # the old one is believed no more
"""
_DEMO = """\
Run ten learners as processes on the shipped traffic series, kill one and start it again, cut
one off and let it back, and compare with a simulation in which nothing fails. Prints a table
and draws a picture.
"""
_ROUTER = """\
Run the router of a mesh with transport zenoh, at the address that mesh.toml names.
"""

ABOUT = {
    "init": ("make the folder of a new mesh", _INIT),
    "up": ("run all learners of a mesh on this machine", _UP),
    "status": ("how the learners are doing", _STATUS),
    "add": ("add a learner", _ADD),
    "remove": ("take a learner out", _REMOVE),
    "rotate-keys": ("renew keys and certificates", _ROTATE),
    "demo": ("ten processes, one killed, one cut off: what happens, in numbers", _DEMO),
    "router": ("run a Zenoh router for learners that cannot reach each other", _ROUTER),
}
