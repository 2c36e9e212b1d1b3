"""What a node needs of its system: Linux, and an end when its parent ends, whatever ends that."""

import ctypes
import os
import signal
import sys

from domkl.errors import MeshError

PR_SET_PDEATHSIG = 1


def require_linux() -> None:
    """Raise on other systems, where file locks, signals and syncs are not what nodes rely on."""
    if sys.platform != "linux":
        raise MeshError(
            f"a mesh needs Linux, got {sys.platform}; simulator, sweeps and estimators run here"
        )


def end_with(parent: int) -> None:
    """Have SIGTERM sent to this process when its parent ends; on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it has ended already
        sys.exit(1)
