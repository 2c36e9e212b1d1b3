"""`domkl mesh` as a user meets it: what it makes, what it says, and nothing is left running."""

import asyncio
import builtins
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from mesh_node import DEADLINE, made, until

from domkl.algorithms.registry import ALGORITHMS
from domkl.cli.main import main
from domkl.cli.mesh import MESHABLE
from domkl.cli.mesh_watch import Screen, _reloaded
from domkl.experiments.mesh_demo import MOMENTS, Plan
from domkl.mesh.config.file import read_config
from domkl.mesh.node.telemetry import state_of
from domkl.mesh.operate.launcher import Launcher

SERIES = ["--target", "load:0:100", "--lags", "2"]
AHEAD = [*SERIES, "--input", "temp:0:30", "--horizon", "1,24"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return main(["mesh", *arguments])


def test_the_parser_knows_the_names():
    assert [name for name, each in ALGORITHMS.items() if each.make().is_meshable] == MESHABLE


def test_init_of_a_series(here, capsys):
    assert run("init", "--learners", "5", "--topology", "ring", *SERIES, "m") == 0
    out = capsys.readouterr().out
    assert "wrote m: 5 learners, 5 edges, and their keys" in out
    config = read_config(Path("m/mesh.toml"))
    assert config.names == tuple(f"learner-{k}" for k in range(1, 6))
    assert config.lags == 2
    assert config == read_config(Path("m/learner-3/mesh.toml"))


def test_init_of_a_table_on_devices(here):
    arguments = [
        "--names", "roof,yard,cellar", "--edges", "roof-yard,yard-cellar",
        "--hosts", "10.0.0.1,10.0.0.2,10.0.0.3", "--target", "power:0:500",
        "--input", "wind:0:40", "--input", "temp:out:-20:45", "--algorithm", "domkl",
        "--set", "rho=3", "--set", "loss=absolute", "--kernels", "0.1,1", "--linear",
    ]  # fmt: skip
    assert run("init", *arguments, "m") == 0
    config = read_config(Path("m/mesh.toml"))
    assert [str(each.address) for each in config.members] == [
        f"10.0.0.{k}:21000" for k in (1, 2, 3)
    ]
    assert [each.name for each in config.inputs] == ["wind", "temp:out"]
    assert (config.algorithm.rho, config.kernels, config.linear) == (3.0, (0.1, 1.0), True)
    assert config.neighbors("yard") == ("roof", "cellar")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target", "load"], 2, "--target must be NAME:LOW:HIGH, such as load:0:100, got 'load'"),
        (["--target", "load:a:b"], 2, "--target must hold numbers, got 'a'"),
        (["--target", "load:9:1", "--lags", "1"], 2, "target: range of load must be finite with"),
        (["--target", "load:0:1"], 2, "inputs must name at least one column, got none"),
        ([*AHEAD, "--input", "load:0:1"], 2, "inputs must not have the target 'load' without lag"),
        ([*AHEAD, "--ahead", "load"], 2, "forecast: ahead must name inputs, temp, got 'load'"),
        ([*AHEAD, "--horizon", "1,10001"], 2, "horizons must be at most 10000, got 10001"),
        ([*SERIES, "--set", "rho"], 2, "--set must be KEY=VALUE, got 'rho'"),
        ([*SERIES, "--set", "rho=1"], 2, "model.parameters.rho is not a key of a mesh"),
        ([*SERIES, "--learners", "0"], 2, "learners must be an integer >= 1, got 0"),
        ([*SERIES, "--names", "a", "--learners", "2"], 2, "--learners and --names exclude"),
        ([*SERIES, "--names", "a,b", "--edges", "a-c"], 2, "edges must join two of the learners"),
        ([*SERIES, "--names", "a,router"], 2, "must not be called authority, removed, router"),
        ([*SERIES, "--days", "0"], 2, "days must be an integer >= 1, got 0"),
        ([*SERIES, "--http-port", "21000"], 2, "http of learner-1 must have a port of its own"),
    ],
)  # fmt: skip
def test_a_wrong_option_leaves_nothing(here, capsys, arguments, code, message):
    assert run("init", *arguments, "m") == code
    assert message in capsys.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["mesh", "rotate-keys", "m", "--authority", "retire"], 2, "no old authority to retire"),
        (["mesh", "ui", "m", "--port", "99999"], 2, "port must be at most 65535, got 99999"),
        (["mesh", "up", "m", "--rate", "1"], 2, "--rate needs --csv"),
        (["mesh", "up", "m", "--topic", "{node}"], 2, "both of these need --mqtt"),
        (["mesh", "restore", "none.tar", "y"], 3, "restore none.tar: No such file or directory"),
        (["mesh", "restore", "m/mesh.toml", "y"], 3, "got m/mesh.toml: no archive"),
        (["node", "m"], 3, "folder must be that of one learner, such as m/learner-1, got m"),
    ],
)  # fmt: skip
def test_a_wrong_use_of_a_mesh_is_one_clear_line(here, capsys, words, code, message):
    assert run("init", *SERIES, "--learners", "2", "m") == 0
    capsys.readouterr()
    assert main(words) == code
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_an_algorithm_of_your_own_runs_in_a_mesh(own_folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    arguments = ["--names", "solo", "--algorithm", "own_gossip:Gossip", "--set", "pace=0.25"]
    kernels = ["--kernels", "0.1,1", "--frequencies", "3"]
    assert run("init", *arguments, *kernels, *SERIES, "m") == 0
    assert 'algorithm = "own_gossip:Gossip"' in Path("m/mesh.toml").read_text()
    assert read_config(Path("m/mesh.toml")).algorithm.pace == 0.25

    async def story():
        node = made(own_folder / "m" / "solo")
        await node.start()
        values = [node.format.sample({"value": float(k)}) for k in range(20)]
        await node.intake.accept(values)
        await until(lambda: node.is_idle)
        found = state_of(node)
        await node.close()
        return found["algorithm"], found["n_learned"]

    assert asyncio.run(story()) == ("own_gossip:Gossip", 18)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x", "model.algorithm must be one of domkl, domkrls"),
        ("no_such_module:X", "model.algorithm must be a class that can be imported"),
        ("pathlib:Path", "model.algorithm must be a subclass of domkl.Algorithm"),
        ("domkl:COMKL", "model.algorithm must exchange messages with neighbors only"),
        (
            "domkl:Alone",
            "model.algorithm must have a default for every parameter",
        ),
    ],
)
def test_an_algorithm_that_cannot_be_meshed_is_one_line(here, capsys, name, message):
    assert run("init", "--algorithm", name, *SERIES, "m") == 2
    assert message in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_init_keeps_what_is_there(here, capsys):
    assert run("init", *SERIES, "m") == 0
    assert run("init", *SERIES, "m") == 2
    assert "folder must be new or empty, got m; choose another name" in capsys.readouterr().err


def test_add_remove_rotate(here, capsys):
    assert run("init", "--names", "a,b,c", *SERIES, "m") == 0
    assert run("add", "m", "d", "--edges", "d-a,d-b", "--host", "10.0.0.4") == 0
    assert "added d at 10.0.0.4:21000, neighbors a, b" in capsys.readouterr().out
    assert run("remove", "m", "a") == 0
    out, err = capsys.readouterr()
    assert "removed a; its folder is now m/removed/a, without the key" in out
    assert "copy mesh.toml of each folder to its device" in err
    assert read_config(Path("m/d/mesh.toml")).names == ("b", "c", "d")
    assert run("rotate-keys", "m", "b", "--days", "7") == 0
    assert run("rotate-keys", "m", "--authority", "new") == 0
    assert run("rotate-keys", "m", "--authority", "retire") == 2
    assert run("rotate-keys", "m") == 0
    assert run("rotate-keys", "m", "--authority", "retire") == 0
    assert run("rotate-keys", "m", "b", "--authority", "new") == 2
    assert "--authority is for all learners, got 'b'" in capsys.readouterr().err


def test_status_of_a_mesh_that_is_down(here, capsys):
    run("init", "--names", "a,b", "--http-port", "1", *SERIES, "m")
    capsys.readouterr()
    assert run("status", "m", "--json") == 4
    learners = json.loads(capsys.readouterr().out)["learners"]
    assert [(each["learner"], each["is_up"]) for each in learners] == [("a", False), ("b", False)]
    assert {each["verdict"] for each in learners} == {"down"}
    assert run("status", "m") == 4
    assert "a: down; it does not answer" in capsys.readouterr().out
    assert run("status", "nowhere") == 3
    assert "folder must be one that domkl mesh init made, got nowhere" in capsys.readouterr().err


def test_up_refuses_what_it_cannot_do(here, capsys):
    run("init", "--names", "a,b", *SERIES, "m")
    assert run("up", "m", "--rate", "3") == 2
    assert run("up", "m", "--only", "x") == 2
    assert "learner must be one of a, b, got 'x'" in capsys.readouterr().err
    with Launcher(Path("m")):
        assert run("up", "m") == 4
    assert f"process {os.getpid()} runs it" in capsys.readouterr().err
    for name in "ab":
        shutil.rmtree(f"m/{name}")
    assert run("up", "m") == 4
    assert "there is nothing to start" in capsys.readouterr().err


def test_a_wrong_file_does_not_end_what_runs(here):
    run("init", "--names", "a,b", *SERIES, "m")
    with Launcher(Path("m")) as launcher:
        before = launcher.config
        Path("m/mesh.toml").write_text("name = 3\n")
        assert _reloaded(launcher) == "going on as before: m/mesh.toml: target is missing"
        assert launcher.config is before


def test_router_needs_one(here, capsys):
    run("init", "--names", "a,b", *SERIES, "m")
    assert run("router", "m") == 2
    assert "m/mesh.toml must name a router, got none" in capsys.readouterr().err


def test_a_missing_extra_is_one_line(here, capsys, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "domkl.mesh.config.folder":
            raise ModuleNotFoundError("No module named 'cryptography'", name="cryptography.x509")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run("apply", "m") == 2
    assert capsys.readouterr().err == (
        "domkl: error: cryptography is not installed; pip install 'domkl[mesh]'\n"
    )


def test_a_terminal_is_redrawn(capsys):
    with Screen(sys.stderr) as screen:
        screen.is_terminal = True
        screen.show("one\ntwo")
        screen.say("news")
        screen.show("three")
    assert capsys.readouterr().err == "one\ntwo\n\x1b[2F\x1b[Jnews\nthree\n\x1b[1F\x1b[J"


def test_the_demonstration_has_two_victims_apart():
    assert Plan().victims == {"kill": "learner-02", "cut": "learner-10"}
    assert Plan(learners=4).victims == {"kill": "learner-2", "cut": "learner-4"}
    assert [*MOMENTS] == ["kill", "restart", "cut", "heal"]
    assert [*MOMENTS.values()] == sorted(MOMENTS.values())
    assert main(["mesh", "demo", "--learners", "3"]) == 2
    assert main(["mesh", "demo", "--seconds", "29"]) == 2


def _wait(what, seconds=DEADLINE):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)
    return found


def _asked():
    command = [sys.executable, "-m", "domkl", "mesh", "status", "m", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)["learners"]


def _learning():
    code, learners = _asked()
    return code == 0 and all(each["samples"] for each in learners)


def _ports():
    """Of this process alone, however many run tests."""
    first = 24000 + os.getpid() % 700 * 10
    return ["--port", str(first), "--http-port", str(first + 5)]


def _opened():
    return [each["n_open"] for each in _asked()[1]]


def _children(folder):
    """Process ids whose command line names the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--parent" in words and any(str(folder).encode() in w for w in words):
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_up_status_add_and_ctrl_c(here):
    folder = here / "m"
    small = ["--kernels", "1,10", "--frequencies", "4"]
    assert run("init", "--names", "a,b,c", *SERIES, *small, *_ports(), "m") == 0
    rows = "\n".join(str((7 * i) % 90) for i in range(3000))
    Path("samples.csv").write_text(f"load\n{rows}\n")
    command = [sys.executable, "-m", "domkl", "mesh", "up", str(folder)]
    options = ["--csv", "samples.csv", "--rate", "20", "--restart"]
    with Path("err").open("w") as err:
        up = subprocess.Popen([*command, *options], stderr=err, stdout=subprocess.PIPE, text=True)
    try:
        _wait(_learning)
        _wait(lambda: _opened() == [2, 2, 2])  # a busy machine may answer too late
        assert len(_children(folder)) == 3
        assert run("add", "m", "d", "--edges", "d-a") == 0  # tells the launcher
        assert _wait(lambda: _opened() == [3, 2, 2, 1])
        victim = _children(folder)[0]
        os.kill(victim, signal.SIGKILL)
        _wait(lambda: victim not in _children(folder) and len(_children(folder)) == 4)
        up.send_signal(signal.SIGINT)
        out, _ = up.communicate(timeout=DEADLINE)
    finally:
        up.kill()
        up.wait()
    text = Path("err").read_text()
    assert up.returncode == 0, text
    assert "ended with signal 9; it will be started again" in text
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["a", "b", "c", "d"]
    _wait(lambda: not _children(folder), 10)


@pytest.mark.slow
def test_ui_prints_its_address_and_status_watches(here):
    run("init", "--names", "a,b", *SERIES, *_ports(), "m")
    command = [sys.executable, "-m", "domkl", "mesh"]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with (
        subprocess.Popen([*command, "ui", "m", "--port", "0"], **given) as ui,
        subprocess.Popen([*command, "status", "m", "--watch", "--json"], **given) as status,
    ):
        address = ui.stdout.readline().strip()
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert b"<title>domkl mesh</title>" in answer.read()
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        for _ in range(2):
            found = json.loads(status.stdout.readline())
            assert (found["code"], [each["verdict"] for each in found["learners"]]) == (
                4, ["down", "down"],
            )  # fmt: skip
        ui.send_signal(signal.SIGINT)
        status.send_signal(signal.SIGINT)
        assert (ui.wait(DEADLINE), status.wait(DEADLINE)) == (0, 4)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="children end with their parent on Linux")
def test_no_orphan_outlives_a_killed_launcher(here):
    folder = here / "m"
    assert run("init", "--names", "a,b", *SERIES, *_ports(), "m") == 0
    command = [sys.executable, "-m", "domkl", "mesh", "up", str(folder)]
    up = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _wait(lambda: len(_children(folder)) == 2)
    finally:
        up.kill()
        up.wait()
    _wait(lambda: not _children(folder), 60)
