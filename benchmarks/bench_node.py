"""A node by itself: how soon it answers, what it acknowledges a second, and that memory stays flat.

    python benchmarks/bench_node.py [--rounds 100000] [--folder DIR]
    python benchmarks/bench_node.py --cost [--against SRC] [--samples 400] [--turns 3]

The folder decides which disk is synced. Compiled functions are in the cache before the first clock
starts.

With --cost: processor time per sample of two nodes that are neighbors, over TLS, at default
settings, which get their samples one by one over HTTP: plain samples, a series, and three forecast
horizons. With --against, the source folder of another version of domkl does the same by turns, and
the ratio is printed.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from domkl.mesh.config.file import Member, MeshConfig, write_config
from domkl.mesh.protocol.model import Range
from domkl.mesh.store.wal import Entry, WriteAheadLog
from domkl.mesh.transports.base import Address

HTTP = Address("127.0.0.1", 18765)
SECONDS = 5.0  # of each measurement


def write_folder(folder):
    folder.mkdir(parents=True)
    member = Member(folder.name, Address("127.0.0.1", 17654), HTTP)
    inputs = tuple(Range(name, 0.0, 1.0) for name in "abcde")
    write_config(
        folder / "mesh.toml",
        MeshConfig(members=(member,), edges=(), target=Range("y", 0.0, 1.0), inputs=inputs),
    )


def sample(k):
    x = [((k + 1) * step) % 1 for step in (0.37, 0.61, 0.13, 0.71, 0.29)]
    return {"x": x, "y": x[0] * x[1]}


class Node:
    """A process; `seconds` is how long it took until it answered."""

    def __init__(self, folder):
        begun = time.perf_counter()
        command = [sys.executable, "-m", "domkl", "node", str(folder)]
        self.process = subprocess.Popen([*command, "--log-level", "error"], env=os.environ)
        while self._status() != 200:
            if self.process.poll() is not None:
                raise SystemExit("the node has ended")
            time.sleep(0.01)
        self.seconds = time.perf_counter() - begun
        self.cpu = float(metric("process_cpu_seconds_total"))

    def _status(self):
        try:
            return ask(connection(), "GET", "/healthz")[0]
        except OSError:
            return 0

    def stop(self):
        self.process.terminate()
        return self.process.wait()


def connection():
    return http.client.HTTPConnection(*HTTP, timeout=60)


def ask(link, method, path, body=None):
    data = None if body is None else json.dumps(body)
    link.request(method, path, data, {"Content-Type": "application/json"})
    answer = link.getresponse()
    return answer.status, answer.read()


def metric(name):
    text = ask(connection(), "GET", "/metrics")[1].decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])


def acknowledged(size, until):
    """Samples acknowledged on one connection, in lists of this size."""
    link, n = connection(), 0
    while time.perf_counter() < until:
        body = sample(n) if size == 1 else [sample(n + i) for i in range(size)]
        status, _ = ask(link, "POST", "/learn", body)
        n += size * (status == 202)
        if status == 429:
            time.sleep(0.05)
    return n


def syncs(folder):
    """The log by itself: what one sync costs, and what sharing it is worth."""
    log = WriteAheadLog(folder / "journal", 6)
    for size in (1, 16, 100):
        entries = [Entry(np.arange(6.0)) for _ in range(size)]
        begun, n = time.perf_counter(), 0
        while time.perf_counter() < begun + SECONDS / 2:
            log.append(entries)
            n += 1
        rate = n / (time.perf_counter() - begun)
        print(f"log, {size:3} samples a sync: {rate:6.0f} syncs/s, {rate * size:8.0f} samples/s")
    log.close()


def rates():
    for n_clients, size in ((1, 1), (16, 1), (1, 100)):
        wait_learned()
        begun = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(n_clients) as pool:
            jobs = [pool.submit(acknowledged, size, begun + SECONDS) for _ in range(n_clients)]
            n = sum(job.result() for job in jobs)
        rate = n / (time.perf_counter() - begun)
        print(f"acknowledged, {n_clients:2} clients, lists of {size:3}: {rate:8.0f} samples/s")


def wait_learned():
    while metric("domkl_samples_queued"):
        time.sleep(0.05)


def memory(n_rounds):
    first = int(metric("domkl_samples_learned_total"))
    begun, sent = time.perf_counter(), 0
    marks = [int(n_rounds * share) for share in (0.1, 0.5, 1.0)]
    for mark in marks:
        link = connection()
        while sent < mark:
            status, _ = ask(link, "POST", "/learn", [sample(sent + i) for i in range(100)])
            sent += 100 * (status == 202)
            if status == 429:
                time.sleep(0.05)
        wait_learned()
        resident = metric("process_resident_memory_bytes") / 2**20
        log = metric("domkl_journal_bytes") / 2**20
        print(f"after {mark:7} rounds: {resident:6.1f} MiB resident, {log:.1f} MiB of log")
    seconds = time.perf_counter() - begun
    learned = int(metric("domkl_samples_learned_total")) - first
    print(f"learned {learned} in {seconds:.0f} s: {learned / seconds:.0f} a second")


INPUTS = [word for name in "abcde" for word in ("--input", f"{name}:0:1")]
#: by name, what `mesh init` is told, and the k-th sample
KINDS = {
    "plain": ([*INPUTS], sample),
    "series": (["--lags", "5"], lambda k: {"value": sample(k)["y"]}),
    "three horizons": (
        ["--input", "a:0:1", "--horizon", "1,6,24", "--lags", "1,2,3,24"],
        lambda k: {"time": 3600.0 * k, "x": sample(k)["x"][:1], "y": sample(k)["y"]},
    ),
}
DOMKL = [sys.executable, "-c", "from domkl.cli.main import entry; entry()"]


def processor_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost(env, kind, n_samples, folder):
    """Milliseconds of processor time per sample and node, and MiB resident, of two neighbors."""
    options, make = KINDS[kind]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        mesh, ports = Path(name) / "mesh", ["--port", "17700", "--http-port", "18700"]
        command = [*DOMKL, "mesh", "init", str(mesh), "--learners", "2", "--target", "y:0:1"]
        subprocess.run([*command, *options, *ports], env=env, check=True, stdout=subprocess.DEVNULL)
        places = [mesh / f"learner-{k}" for k in (1, 2)]
        start = [*DOMKL, "node", "--log-level", "error"]
        nodes = [subprocess.Popen([*start, str(place)], env=env) for place in places]
        try:
            links = [http.client.HTTPConnection("127.0.0.1", 18700 + k, timeout=60) for k in (0, 1)]
            for link in links:
                while not is_ready(link):
                    time.sleep(0.02)
            feed(links, make, range(50))
            before = [processor_seconds(node) for node in nodes]
            feed(links, make, range(50, 50 + n_samples))
            took = [processor_seconds(node) - b for node, b in zip(nodes, before, strict=True)]
            resident = [resident_mebibytes(node) for node in nodes]
        finally:
            for node in nodes:
                node.terminate()
            for node in nodes:
                node.wait()
    return 1000 * sum(took) / len(took) / n_samples, max(resident)


def is_ready(link):
    try:
        return ask(link, "GET", "/healthz")[0] == 200
    except OSError:
        link.close()
        return False


def feed(links, make, numbers):
    """Send samples one by one to each node, and wait until the last is learned."""
    for k in numbers:
        for link in links:
            assert ask(link, "POST", "/learn", make(k))[0] == 202
    for link in links:
        while json.loads(ask(link, "GET", "/state")[1])["n_queued"]:
            time.sleep(0.05)


def resident_mebibytes(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def costs(args):
    versions = {"this version": os.environ}
    if args.against is not None:
        versions["the other"] = os.environ | {"PYTHONPATH": str(args.against.resolve())}
    for kind in KINDS:
        found = {label: [] for label in versions}
        for turn in range(args.turns + 1):  # the first fills the cache
            for label, env in versions.items():
                made = cost(env, kind, args.samples if turn else 10, args.folder)
                found[label] += [made] if turn else []
        for label, each in found.items():
            times, sizes = zip(*each, strict=True)
            print(
                f"{kind}, {label}: {statistics.median(times):.2f} ms of processor per sample, least"
                f" {min(times):.2f}, most {max(times):.2f}; {max(sizes):.1f} MiB resident"
            )
        if args.against is not None:
            this, other = ([t for t, _ in each] for each in found.values())
            least, middle = (
                min(this) / min(other),
                statistics.median(this) / statistics.median(other),
            )
            print(f"{kind}: {least:.2f} of the other's (least), {middle:.2f} (medians)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    if args.cost:
        costs(args)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name) / "solo"
        write_folder(folder)
        syncs(Path(name))
        Node(folder).stop()
        starts = []
        for _ in range(3):
            node = Node(folder)
            starts.append(node)
            node.stop()
        best = min(starts, key=lambda each: each.seconds)
        print(f"answers after {best.seconds:.2f} s, best of 3, of it {best.cpu:.2f} s of processor")
        node = Node(folder)
        try:
            rates()
            memory(args.rounds)
        finally:
            node.stop()


if __name__ == "__main__":
    main()
