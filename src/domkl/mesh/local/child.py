"""Run `domkl` as a child that ends when its parent does, whatever ended that.

python -m domkl.mesh.local.child PARENT ARGUMENT...
"""

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Tie this process to its parent, then be the command line."""
    parent = int(argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it was faster
        sys.exit(1)
    sys.argv = ["domkl", *argv[2:]]
    runpy.run_module("domkl.cli.main", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv)
