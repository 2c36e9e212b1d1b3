"""The live page with 50 nodes: first paint, time to live data, processor time of page and server.

    python benchmarks/bench_page.py [--nodes 50] [--rate 10] [--seconds 20]
    python benchmarks/bench_page.py --rolling [--nodes 50]

All nodes are real ones, in one process to spare memory, with a small model (DOMKL, two kernels):
the page draws the same whatever they learn. Processor time is a share of one core. With --rolling
each is a process of its own, and all are stopped and started again, one after the other, while the
page is open: it must see each go and come back, stay live, and have nothing to complain of.
"""

import argparse
import asyncio
import logging
import math
import multiprocessing
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import psutil
from browser import Watched, browser
from mesh_node import Client, mesh_config, prepared, wait_until
from mesh_served import served

from domkl.mesh.config.folder import init_mesh, read_mesh
from domkl.mesh.config.topology import named_edges
from domkl.mesh.operate.launcher import Launcher


def nodes(folder, n_nodes, rate, is_up, is_over):
    """Run the nodes, and give each so many samples a second."""
    logging.getLogger("domkl").setLevel(logging.ERROR)
    names = tuple(f"n{k:02}" for k in range(n_nodes))
    config = mesh_config(names, named_edges("ring", names), mode="async")
    with served(folder, config) as mesh:
        is_up.set()
        k, begin = 0, time.monotonic()
        while not is_over.is_set():
            mesh.do(learned(mesh.nodes.values(), range(k, k + rate)))
            k += rate
            time.sleep(max(0.0, begin + k / rate - time.monotonic()))


async def learned(all_nodes, numbers):
    """A second's samples for each node, in one list: what is measured is the page, not the disk."""
    await asyncio.gather(*(node.intake.accept(prepared(node, numbers)) for node in all_nodes))


def cpu(processes):
    """Processor seconds of processes."""
    return sum(sum(each.cpu_times()[:2]) for each in processes)


def of_chromium():
    """The processes of the browser: all, and the one that draws the page."""
    mine = psutil.Process(os.getpid()).children(recursive=True)
    found = [each for each in mine if "chrom" in each.name()]
    return found, [each for each in found if "--type=renderer" in each.cmdline()]


def measured(address, ui, node, seconds):
    with browser() as made:
        watched = Watched(made)
        page = watched.page
        begin = time.perf_counter()
        watched.open(address)
        page.wait_for_selector("#connection.live")
        live = time.perf_counter() - begin
        paint = page.evaluate("performance.getEntriesByType('paint').map((e) => e.startTime)")
        page.select_option("#range", "1 minute")
        time.sleep(60)  # until a minute is drawn
        groups = [*of_chromium(), [psutil.Process(ui.pid)]]
        counts, moments, used = [], [], []
        for pause in (seconds, 0):
            counts.append(node.ask("/state")[1]["n_learned"])
            moments.append(time.perf_counter())
            used.append([cpu(group) for group in groups])
            time.sleep(pause)
        span = moments[1] - moments[0]
        browser_, renderer, server = ((b - a) / span for a, b in zip(*used, strict=True))
        n_rows = page.locator("#learners tbody tr").count()
    rate = (counts[1] - counts[0]) / span
    print(f"{n_rows} learners, {rate:.1f} samples a second each; load {os.getloadavg()[0]:.1f}")
    print(f"first paint after {min(paint, default=math.nan) / 1000:.2f} s, live after {live:.2f} s")
    print(f"of a core: browser {browser_:.1%}, its page {renderer:.1%}, server {server:.1%}")


def rolled(n_nodes):
    """Restart every node under the eyes of the page."""
    names = tuple(f"n{k:02}" for k in range(n_nodes))
    with tempfile.TemporaryDirectory(prefix="domkl-") as name:
        folder = Path(name) / "mesh"
        init_mesh(folder, mesh_config(names, named_edges("ring", names), mode="async"))
        command = [sys.executable, "-m", "domkl", "mesh", "ui", str(folder), "--port", "0"]
        with (
            Launcher(folder) as nodes,
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ui,
            browser() as made,
        ):
            nodes.start()
            watched = Watched(made).open(ui.stdout.readline().strip()).live()
            try:
                _roll(watched, nodes)
            finally:
                ui.terminate()


def _roll(watched, nodes):
    page = watched.page
    verdicts = page.locator("#learners tbody td:first-of-type")

    def n_well():
        found = verdicts.all_text_contents()
        return sum(bool(re.search("up|exchanging|learning|worth it", each)) for each in found)

    n = len(nodes.nodes)
    wait_until(lambda: n_well() == n, 900)
    page.evaluate(
        """() => { window.away = 0; new MutationObserver(() => {
             if (!document.querySelector("#connection.live")) window.away += 1;
           }).observe(document.querySelector("#connection"), {attributes: true}); }"""
    )
    begin, seen = time.monotonic(), []
    for node in nodes.nodes.values():
        node.send(signal.SIGTERM)
        since = time.monotonic()
        wait_until(lambda: n_well() == n - 1, 60)
        seen.append(time.monotonic() - since)
        wait_until(lambda node=node: node.ended() or node.pid is None, 60)
        node.start()
        wait_until(lambda: n_well() == n, 600)
    took, load = time.monotonic() - begin, os.getloadavg()[0]
    print(f"{len(seen)} nodes restarted in {took:.0f} s, the page open; load {load:.1f}")
    print(f"a node's end was seen after {statistics.median(seen):.2f} s, at most {max(seen):.2f}")
    print(f"the page was {page.evaluate('window.away')} times not live, and complained of"
          f" {watched.complaints}; it asked {watched.hosts}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rolling", action="store_true")
    args = parser.parse_args()
    if args.rolling:
        rolled(args.nodes)
        return
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
            first = read_mesh(folder).members[0].http
            measured(address, ui, Client(first), args.seconds)
        finally:
            ui.terminate()
            ui.wait()
            is_over.set()
            child.join()


if __name__ == "__main__":
    main()
