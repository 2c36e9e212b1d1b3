"""A process ends with its parent; that SIGTERM comes is tested with real nodes in test_mesh.py.

And on other systems than Linux the commands of a mesh say so.
"""

import os
import subprocess
import sys

import pytest

from domkl.cli.main import main

CODE = "import sys; from domkl.mesh.operate.parent import end_with; end_with(int(sys.argv[1]))"


def test_a_parent_that_has_ended_already_ends_the_process():
    for parent, code in ((os.getpid(), 0), (1, 1)):
        command = [sys.executable, "-c", CODE, str(parent)]
        assert subprocess.run(command, check=False).returncode == code


@pytest.mark.parametrize("words", [["node", "folder"], ["mesh", "status", "folder"]])
def test_other_systems_are_told_that_a_mesh_needs_linux(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(words) == 4
    assert "a mesh needs Linux, got win32; simulator, sweeps" in capsys.readouterr().err
