"""A node by itself: how soon it answers, what it acknowledges a second, and that memory stays flat.

    python benchmarks/bench_node.py [--rounds 100000] [--folder DIR]

The folder decides which disk is synced. Compiled functions are in the cache before the first clock
starts.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import re
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
    """The journal by itself: what one sync costs, and what sharing it is worth."""
    journal = WriteAheadLog(folder / "journal", 6)
    for size in (1, 16, 100):
        entries = [Entry(np.arange(6.0)) for _ in range(size)]
        begun, n = time.perf_counter(), 0
        while time.perf_counter() < begun + SECONDS / 2:
            journal.append(entries)
            n += 1
        rate = n / (time.perf_counter() - begun)
        print(
            f"journal, {size:3} samples a sync: {rate:6.0f} syncs/s, {rate * size:8.0f} samples/s"
        )
    journal.close()


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
        journal = metric("domkl_journal_bytes") / 2**20
        print(f"after {mark:7} rounds: {resident:6.1f} MiB resident, {journal:.1f} MiB of journal")
    seconds = time.perf_counter() - begun
    learned = int(metric("domkl_samples_learned_total")) - first
    print(f"learned {learned} in {seconds:.0f} s: {learned / seconds:.0f} a second")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
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
