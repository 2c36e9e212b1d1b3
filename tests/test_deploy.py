"""The systemd unit is one, and keeps to its own folders."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parent.parent / "deploy" / "domkl-node@.service"


def test_the_unit_starts_a_node_and_reloads_by_sighup():
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str
    unit.read(UNIT)
    service = unit["Service"]
    assert service["ExecStart"] == "/opt/domkl/bin/domkl node /var/lib/domkl/%i $DOMKL_OPTIONS"
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert service["ProtectSystem"] == "strict"
    assert service["RestartPreventExitStatus"] == "2 3"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_takes_it(tmp_path):
    copy = tmp_path / "domkl-node@x.service"
    copy.write_text(UNIT.read_text().replace("/opt/domkl/bin/domkl", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert copy.name not in done.stderr, done.stderr
