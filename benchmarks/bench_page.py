"""The live page with 50 nodes: first paint, time to live data, processor time of page and server.

    python benchmarks/bench_page.py [--nodes 50] [--rate 10] [--seconds 20]

All nodes are real ones, in one process to spare memory, with a small model (DOMKL, two kernels):
the page draws the same whatever they learn. Processor time is a share of one core.
"""

import argparse
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import psutil
from browser import Watched, browser
from mesh_node import mesh_config, prepared
from mesh_served import served

from domkl.mesh.config.topology import named_edges


def nodes(folder, n_nodes, rate, is_up, is_over):
    """Run the nodes, and give each so many samples a second."""
    names = tuple(f"n{k:02}" for k in range(n_nodes))
    config = mesh_config(names, named_edges("ring", names), mode="async")
    with served(folder, config) as mesh:
        is_up.set()
        k, begin = 0, time.monotonic()
        while not is_over.is_set():
            for node in mesh.nodes.values():
                mesh.do(node.intake.accept(prepared(node, [k])))
            k += 1
            time.sleep(max(0.0, begin + k / rate - time.monotonic()))


def cpu(process):
    """Processor seconds of a process and its children."""
    found = [process, *process.children(recursive=True)]
    total = 0.0
    for each in found:
        try:
            total += sum(each.cpu_times()[:2])
        except psutil.Error:
            continue
    return total


def measured(address, ui, seconds):
    with browser() as made:
        watched = Watched(made)
        page = watched.page
        begin = time.perf_counter()
        watched.open(address)
        page.wait_for_selector("#connection.live")
        live = time.perf_counter() - begin
        paint = page.evaluate("performance.getEntriesByType('paint').map((e) => e.startTime)")
        page.select_option("#range", "1 minute")
        time.sleep(5)
        me = psutil.Process(os.getpid())
        before = cpu(me), cpu(ui), time.perf_counter()
        time.sleep(seconds)
        after = cpu(me), cpu(ui), time.perf_counter()
        shares = [(after[i] - before[i]) / (after[2] - before[2]) for i in (0, 1)]
        n_rows = page.locator("#learners tbody tr").count()
        rate = page.locator("#queue .legend b").first.text_content()
    print(f"{n_rows} learners, {rate} samples a second of the first one")
    print(f"first paint after {min(paint, default=math.nan) / 1000:.2f} s, live after {live:.2f} s")
    print(f"browser {shares[0]:.1%} of a core, server of the page {shares[1]:.1%}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--rate", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    is_up, is_over = context.Event(), context.Event()
    with tempfile.TemporaryDirectory(prefix="domkl-") as name:
        folder = Path(name) / "mesh"
        given = (folder, args.nodes, args.rate, is_up, is_over)
        child = context.Process(target=nodes, args=given)
        child.start()
        assert is_up.wait(600)
        command = [sys.executable, "-m", "domkl", "mesh", "ui", str(folder), "--port", "0"]
        ui = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            address = ui.stdout.readline().strip()
            time.sleep(3)  # it follows all nodes by now
            measured(address, psutil.Process(ui.pid), args.seconds)
        finally:
            ui.terminate()
            ui.wait()
            is_over.set()
            child.join()


if __name__ == "__main__":
    main()
