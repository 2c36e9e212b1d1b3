"""A process ends with its parent; that SIGTERM comes is tested with real nodes in test_mesh.py."""

import os
import subprocess
import sys

CODE = "import sys; from domkl.mesh.local.parent import end_with; end_with(int(sys.argv[1]))"


def test_a_parent_that_has_ended_already_ends_the_process():
    for parent, code in ((os.getpid(), 0), (1, 1)):
        command = [sys.executable, "-c", CODE, str(parent)]
        assert subprocess.run(command, check=False).returncode == code
