"""What a node costs beside its work: memory, and processor time until it is ready.

    python benchmarks/bench_lean.py [--nodes 2] [--samples 1000] [--against SRC]

A ring of nodes with the default model (DOMKRLS, five inputs) over TLS on this machine, each a
process, started one after the other from a warm cache. Memory is read when each has learned its
samples: VmRSS and its share of unchanged pages of files, and PSS, which counts a page that n
processes share as 1/n. With --against, the source folder of another version of domkl runs by turns.
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


def ask(k, method, path, body=None):
    link = http.client.HTTPConnection("127.0.0.1", HTTP + k, timeout=60)
    data = None if body is None else json.dumps(body)
    link.request(method, path, data, {"Content-Type": "application/json"})
    answer = link.getresponse()
    return answer.status, answer.read()


def is_ready(k):
    try:
        return ask(k, "GET", "/healthz")[0] == 200
    except OSError:
        return False


def wait(claim):
    while not claim():
        time.sleep(0.02)


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


def run(label, env, n_nodes, n_samples):
    """Start a ring, have it learn, print what it took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "mesh"
        domkl = [sys.executable, "-m", "domkl"]
        inputs = [word for each in "abcde" for word in ("--input", f"{each}:0:1")]
        ports = ["--port", str(PORT), "--http-port", str(HTTP), "--target", "y:0:1"]
        making = [*domkl, "mesh", "init", str(folder), "--learners", str(n_nodes), *inputs, *ports]
        subprocess.run(making, env=env, check=True, stdout=subprocess.DEVNULL)
        processes, cpu = [], []
        try:
            for k in range(n_nodes):
                place = folder / f"learner-{k + 1:0{len(str(n_nodes))}d}"
                node = [*domkl, "node", str(place), "--log-level", "error"]
                processes.append(subprocess.Popen(node, env=env))
                wait(lambda k=k: is_ready(k))
                cpu.append(seconds(processes[k]))
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
    return statistics.median(cpu)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--against", type=Path, metavar="SRC")
    args = parser.parse_args()
    versions = {"this version": dict(os.environ)}
    if args.against is not None:
        versions["the other"] = os.environ | {"PYTHONPATH": str(args.against.resolve())}
    for label, env in versions.items():
        run(f"{label}, to warm the cache", env, 2, 10)
    took = {label: run(label, env, args.nodes, args.samples) for label, env in versions.items()}
    if len(took) == 2:
        ratio = took["this version"] / took["the other"]
        print(f"processor time until ready: {ratio:.2f} of the other version's")


if __name__ == "__main__":
    main()
