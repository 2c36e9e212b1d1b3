"""Faults of real processes: killed, stopped, cut off."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mesh_nets import NETS, story, wait_for

from domkl.mesh.config import certificates
from domkl.mesh.transports.tls import SILENCE_MS
from domkl.mesh.transports.zenoh_config import LEASE_MS

CHILD = Path(__file__).parents[1] / "support" / "mesh_child.py"
KINDS = ["tls", "zenoh"]

pytestmark = pytest.mark.slow


class Child:
    """A node in a process, and what it tells."""

    def __init__(self, *prefix, period=0.0, **settings):
        self.news, self.process = [], None
        self.prefix, self.settings = prefix, settings | {"period": period}

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.prefix,
            sys.executable,
            str(CHILD),
            json.dumps(self.settings),
            stdout=asyncio.subprocess.PIPE,
        )
        self.reader = asyncio.create_task(self._read())
        await wait_for(lambda: "started" in self.news)
        return self

    async def _read(self):
        async for line in self.process.stdout:
            self.news.append(line.decode().strip())

    def is_up(self, neighbor):
        last = [news for news in self.news if news in (f"up {neighbor}", f"down {neighbor}")]
        return last[-1:] == [f"up {neighbor}"]

    async def end(self, how=signal.SIGKILL):
        if self.process is None:
            return
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
        await self.process.wait()
        await self.reader


@pytest.fixture(params=KINDS)
def net(request, tmp_path):
    net = NETS[request.param](tmp_path)
    net.kind = request.param

    async def straight(name, neighbors):
        return {each: net.address(each) for each in neighbors}

    net.addresses = straight  # past the proxies
    return net


async def child(net, name):
    """A neighbor of a, which answers."""
    return await Child(
        kind=net.kind,
        name=name,
        neighbors={"a": str(net.address("a"))},
        listen=str(net.address(name)),
        certificates=str(net.certificates(name)),
    ).start()


async def answer(a, name, word):
    """Send until it is answered; the answer to an older frame does not count."""
    await wait_for(lambda: a.send(name, word) and word in a.heard(name))


def test_silence_is_noticed_within_five_seconds():
    """By the timers; how long a busy machine takes is not a matter of this package."""
    assert max(SILENCE_MS, LEASE_MS) <= 5000


@story
async def test_a_killed_process_is_noticed_and_joins_again(net):
    a = await net.start("a", ["b", "c"])
    b, c = await child(net, "b"), await child(net, "c")
    try:
        await wait_for(lambda: a.up == {"b", "c"})
        await answer(a, "b", b"first")
        await b.end()
        await wait_for(lambda: a.up == {"c"})
        await answer(a, "c", b"undisturbed")
        b = await child(net, "b")
        await wait_for(lambda: a.up == {"b", "c"})
        await answer(a, "b", b"second")
        assert [is_up for name, is_up, _ in a.peers if name == "c"] == [True]
    finally:
        await asyncio.gather(b.end(), c.end())


@story
async def test_a_stopped_process_delays_nobody_and_continues(net):
    a = await net.start("a", ["b", "c"])
    b, c = await child(net, "b"), await child(net, "c")
    try:
        await wait_for(lambda: a.up == {"b", "c"})
        b.process.send_signal(signal.SIGSTOP)
        dropped = number = 0
        while not dropped or "b" in a.up:  # until it is noticed
            dropped += not a.send("b", bytes(14_000))
            number += 1
            word = number.to_bytes(4, "big")
            assert a.send("c", word)
            await wait_for(lambda w=word: a.heard("c")[-1:] == [w])
        b.process.send_signal(signal.SIGCONT)
        await answer(a, "b", b"back")
        assert [is_up for name, is_up, _ in a.peers if name == "c"] == [True]
    finally:
        await asyncio.gather(b.end(), c.end())


class Namespaces:
    """Two namespaces whose only way to each other leads through a third."""

    def __init__(self):
        self.left, self.middle, self.right = (f"domkl{os.getpid()}{side}" for side in "lmr")
        self.made = []

    def make(self):
        for name in (self.left, self.middle, self.right):
            _ip("netns", "add", name)
            self.made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        for net, side in ((1, self.left), (2, self.right)):
            _ip(
                "-n",
                side,
                "link",
                "add",
                "v",
                "type",
                "veth",
                "peer",
                f"v{net}",
                "netns",
                self.middle,
            )
            for name, device, host in ((side, "v", 2), (self.middle, f"v{net}", 1)):
                _ip("-n", name, "addr", "add", f"10.213.{net}.{host}/24", "dev", device)
                _ip("-n", name, "link", "set", device, "up")
            _ip("-n", side, "route", "add", "default", "via", f"10.213.{net}.1")
        self.forward(True)

    def forward(self, does):
        command = ["ip", "netns", "exec", self.middle, "sysctl", "-qw"]
        subprocess.run([*command, f"net.ipv4.ip_forward={int(does)}"], check=True)

    def remove(self):
        for name in self.made:
            _ip("netns", "del", name)


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def namespaces():
    spaces = Namespaces()
    if shutil.which("ip") is None or shutil.which("sysctl") is None:
        pytest.skip("needs ip and sysctl")
    try:
        try:
            spaces.make()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"may not make network namespaces: {error.stderr}")
        yield spaces
    finally:
        spaces.remove()


@story
async def test_a_silent_cut_is_noticed_at_both_ends_and_heals(net, namespaces):
    net.certificates("a")
    hosts = {"a": "10.213.1.2", "b": "10.213.2.2"}
    ends = {}
    for name, other, space in (("a", "b", namespaces.left), ("b", "a", namespaces.right)):
        folder = net.folder / f"{name}-far"
        certificates.issue(net.folder / "ca", name, folder, hosts=[hosts[name]])
        prefix = ("ip", "netns", "exec", space)
        settings = {"kind": net.kind, "name": name, "certificates": str(folder), "period": 0.05}
        where = {"listen": f"{hosts[name]}:7447", "neighbors": {other: f"{hosts[other]}:7447"}}
        ends[name] = Child(*prefix, **settings, **where)
    a, b = ends.values()
    await a.start()
    try:
        await b.start()
        await wait_for(lambda: "frame a" in str(b.news) and "frame b" in str(a.news))
        namespaces.forward(False)
        await wait_for(lambda: not a.is_up("b") and not b.is_up("a"))
        a.news.clear()
        b.news.clear()
        namespaces.forward(True)
        await wait_for(lambda: "frame a" in str(b.news) and "frame b" in str(a.news))
        await wait_for(lambda: a.is_up("b") and b.is_up("a"))
    finally:
        await asyncio.gather(a.end(), b.end())
