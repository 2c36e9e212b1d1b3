"""What a node costs beside its work: memory, and processor time until it is ready.

    python benchmarks/bench_lean.py [--nodes 2] [--samples 1000] [--against SRC [--starts 10]]

A ring of nodes with the default model (DOMKRLS, five inputs) over TLS on this machine, each a
process, started one after the other from a warm cache. Memory is read when each has learned its
samples: VmRSS and its share of unchanged pages of files, and PSS, which counts a page that n
processes share as 1/n. With --against, the source folder of another version of domkl does the same,
and then nodes of both start by turns, so that whatever else the machine does meets both alike.
Modules are stored compiled, as pip does when it installs a package.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PORT, HTTP = 19700, 19800
DOMKL = [sys.executable, "-c", "from domkl.cli.main import entry; entry()"]  # 0.1 has no __main__


def ask(k, method, path, body=None):
    link = http.client.HTTPConnection("127.0.0.1", HTTP + k, timeout=60)
    data = None if body is None else json.dumps(body)
    link.request(method, path, data, {"Content-Type": "application/json"})
    answer = link.getresponse()
    return answer.status, answer.read()


def wait(claim):
    while not claim():
        time.sleep(0.005)


def samples(k, first, n):
    for i in range(first, first + n):
        x = [((i + 7 * k + 1) * step) % 1 for step in (0.37, 0.61, 0.13, 0.71, 0.29)]
        yield {"x": x, "y": x[0] * x[1]}


def seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def mebibytes(process, file, *names):
    lines = Path(f"/proc/{process.pid}/{file}").read_text().splitlines()
    found = {words[0]: words[1] for line in lines if len(words := line.split()) == 3}
    return [int(found[f"{name}:"]) / 1024 for name in names]


def make(folder, env, n_nodes):
    """Make a ring; the folders of its learners."""
    inputs = [word for each in "abcde" for word in ("--input", f"{each}:0:1")]
    ports = ["--port", str(PORT), "--http-port", str(HTTP), "--target", "y:0:1"]
    making = [*DOMKL, "mesh", "init", str(folder), "--learners", str(n_nodes), *inputs, *ports]
    subprocess.run(making, env=env, check=True, stdout=subprocess.DEVNULL)
    return [folder / f"learner-{k + 1:0{len(str(n_nodes))}d}" for k in range(n_nodes)]


def start(place, env):
    """Start a node; its process, and the processor time until its log said that it was ready.

    Asking it again and again would be part of what it takes.
    """
    log = place / "bench.log"
    with log.open("w") as file:
        process = subprocess.Popen([*DOMKL, "node", str(place)], env=env, stderr=file)
    wait(lambda: " info ready " in log.read_text() or process.poll() is not None)
    return process, seconds(process)


def run(label, env, n_nodes, n_samples):
    """Start a ring, have it learn, print what it took."""
    with tempfile.TemporaryDirectory() as name:
        processes, cpu = [], []
        try:
            for place in make(Path(name) / "mesh", env, n_nodes):
                process, took = start(place, env)
                processes.append(process)
                cpu.append(took)
            for first in range(0, n_samples, 10):
                for k in range(n_nodes):
                    body = list(samples(k, first, 10))
                    wait(lambda k=k, body=body: ask(k, "POST", "/learn", body)[0] == 202)
            for k in range(n_nodes):
                wait(lambda k=k: b"domkl_samples_queued 0.0" in ask(k, "GET", "/metrics")[1])
            resident = [mebibytes(each, "status", "VmRSS", "RssFile") for each in processes]
            shared = [mebibytes(each, "smaps_rollup", "Pss")[0] for each in processes]
        finally:
            for each in processes:
                each.terminate()
            for each in processes:
                each.wait()
    print(
        f"{label}: {n_nodes} nodes, {n_samples} samples each: VmRSS at most"
        f" {max(r for r, _ in resident):.1f} MiB (of files {max(f for _, f in resident):.1f}),"
        f" PSS {sum(shared):.0f} MiB in all, {statistics.mean(shared):.1f} each;"
        f" ready after {statistics.median(cpu):.2f} s of processor (least {min(cpu):.2f})"
    )


def by_turns(versions, n_starts):
    """Start a node of each version by turns, and print the processor time until each was ready."""
    took = {label: [] for label in versions}
    with tempfile.TemporaryDirectory() as name:
        places = {
            label: make(Path(name) / f"mesh-{k}", env, 2)[0]
            for k, (label, env) in enumerate(versions.items())
        }
        for _ in range(n_starts):
            for label, env in versions.items():
                process, cpu = start(places[label], env)
                process.terminate()
                process.wait()
                took[label].append(cpu)
    for label, each in took.items():
        print(
            f"{label}: ready after {statistics.median(each):.2f} s of processor, least"
            f" {min(each):.2f}, most {max(each):.2f}, {n_starts} starts"
        )
    this, other = took.values()
    print(
        f"processor time until ready, of the other version's: {min(this) / min(other):.2f} (least),"
        f" {statistics.median(this) / statistics.median(other):.2f} (medians)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--starts", type=int, default=10)
    args = parser.parse_args()
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    versions = {"this version": plain}
    if args.against is not None:
        versions["the other"] = plain | {"PYTHONPATH": str(args.against.resolve())}
    for label, env in versions.items():
        run(f"{label}, to warm the cache", env, 2, 10)
    if args.nodes > 0:
        for label, env in versions.items():
            run(label, env, args.nodes, args.samples)
    if args.against is not None:
        by_turns(versions, args.starts)


if __name__ == "__main__":
    main()
