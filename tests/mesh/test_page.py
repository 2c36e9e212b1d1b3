"""The live page in a real browser: every view, a kill and a cut while it is open, hostile names."""

import csv
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import browser
import pytest
from mesh_node import DEADLINE, TARGET, free_ports, mesh_config, sample, wait_until
from mesh_served import served

from domkl.mesh.config.file import write_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.operate.launcher import Launcher
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Range
from domkl.mesh.testing.relay import Relay
from domkl.mesh.transports.base import Address

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing())),
]

HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>\'&'
NAMES = ("a", "b", "c")
EDGES = (("a", "b"), ("b", "c"), ("a", "c"))
CHARTS = ("errors", "disagreement", "error", "truth", "weights", "queue")


@pytest.fixture(scope="module")
def chromium():
    with browser.browser() as made:
        yield made


@contextmanager
def page_of(made, address, **options):
    """An open page; at the end it must have complained of nothing, and asked nobody else."""
    watched = browser.Watched(made, **options)
    try:
        yield watched.open(address)
        assert watched.complaints == []
        assert watched.hosts == {address.split("/")[2]}
        assert not watched.page.evaluate("window.broken")
    finally:
        watched.close()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    """Three processes, a cable to cut c off, and `domkl mesh ui`: its address, nodes and cable."""
    folder = tmp_path_factory.mktemp("page")
    target = Range(HOSTILE, TARGET.low, TARGET.high)
    config = replace(mesh_config(NAMES, EDGES, timing=Timing(silence=2.0)), target=target)
    init_mesh(folder / "mesh", config)
    listen = Address("127.0.0.1", free_ports(1)[0])
    far = replace(config.member("c"), address=listen)  # as its neighbors see it
    for name in "ab":  # they dial, since their names come first
        members = (*config.members[:2], far)
        write_config(folder / "mesh" / name / "mesh.toml", replace(config, members=members))
    with (folder / "samples.csv").open("w", newline="") as file:
        rows = [sample(k) for k in range(9000)]
        table = csv.writer(file)
        table.writerows([("a", "b", HOSTILE), *((*each["x"], each["y"]) for each in rows)])
    options = lambda name: (  # noqa: E731
        "--csv", str(folder / "samples.csv"), "--rows", f"{NAMES.index(name)}::3", "--rate", "10",
    )  # fmt: skip
    command = [sys.executable, "-m", "domkl", "mesh", "ui", str(folder / "mesh"), "--port", "0"]
    with (
        Relay(listen, config.member("c").address) as relay,
        Launcher(folder / "mesh", options=options) as nodes,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ui,
    ):
        try:
            nodes.start()
            yield ui.stdout.readline().strip(), nodes, relay
        finally:
            ui.send_signal(signal.SIGTERM)
            assert ui.wait(DEADLINE) == 0


def verdict(watched, name):
    row = watched.page.locator("#learners tbody tr", has=watched.page.get_by_text(name, exact=True))
    return row.locator("td").first.text_content()


def all_well(watched):
    found = [verdict(watched, name) for name in NAMES]
    return all(re.search("exchanging|learning|worth it", text) for text in found)


def silent_edges(watched):
    return watched.page.locator("#network line.silent title").all_text_contents()


def test_every_view_of_a_mesh(chromium, mesh):
    address = mesh[0]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
    with page_of(chromium, address) as watched:
        page = watched.live().page
        wait_until(lambda: all_well(watched))
        page.select_option("#range", "1 minute")
        wait_until(lambda: not silent_edges(watched))
        assert page.locator("#network .node").count() == page.locator("#learners tbody tr").count()
        wait_until(lambda: page.locator("#network line.open").count() == 3)
        for chart in CHARTS:
            wait_until(lambda: page.locator(f"#{chart} path.line[d*='L']").count() > 0)  # noqa: B023
        assert page.locator("#trust").is_hidden()  # DOMKL cannot say what it trusts
        wait_until(lambda: page.locator("#windows tbody tr").count() == 5)
        wait_until(lambda: page.locator("#edges tbody tr").count() == 2)
        wait_until(lambda: page.locator("#events li").count() >= 3)
        assert f"Error, {HOSTILE}" in page.locator("#learners thead").text_content()
        page.locator("#network .node").nth(1).focus()
        page.keyboard.press("Enter")
        wait_until(lambda: page.locator("#chosen-title").text_content() == "b")
        page.locator("#errors svg[role=img]").focus()
        page.keyboard.press("ArrowLeft")
        wait_until(lambda: re.search(r"b [\d.]+", page.locator("#errors .readout").text_content()))
        page.get_by_role("button", name="c", exact=True).first.click()
        wait_until(lambda: page.locator("#chosen-title").text_content() == "c")
        for each in ("10 minutes", "1 hour", "1 day", "1 week", "1 year"):
            page.select_option("#range", each)
            wait_until(lambda: page.locator("#error path.line").count() > 0)
        assert watched.serious() == []


def test_on_a_phone_in_the_dark(chromium, mesh):
    with page_of(chromium, mesh[0], viewport=browser.PHONE, dark=True) as watched:
        page = watched.live().page
        wait_until(lambda: page.locator("#errors path.line").count() > 0)
        assert page.evaluate("document.documentElement.scrollWidth") <= browser.PHONE["width"]
        ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert ground == "rgb(16, 22, 28)"
        assert watched.serious() == []


def test_a_kill_a_cut_and_a_rolling_restart_while_it_is_open(chromium, mesh):
    address, nodes, relay = mesh
    with page_of(chromium, address) as watched:
        page = watched.live().page
        wait_until(lambda: all_well(watched) and not silent_edges(watched))
        nodes.nodes["b"].send(signal.SIGKILL)
        wait_until(lambda: "down" in verdict(watched, "b"))
        wait_until(lambda: len(silent_edges(watched)) == 2)
        wait_until(lambda: "b: b does not answer" in page.locator("#events").text_content())
        nodes.poll()
        nodes.nodes["b"].start()
        wait_until(lambda: all_well(watched) and not silent_edges(watched))
        relay.cut()
        wait_until(lambda: len(silent_edges(watched)) == 2)
        wait_until(lambda: "! up" in verdict(watched, "c"))
        wait_until(lambda: "was not heard for" in page.locator("#events").text_content())
        relay.heal()
        wait_until(lambda: all_well(watched) and not silent_edges(watched))
        for name in NAMES:
            nodes.nodes[name].send(signal.SIGTERM)
            wait_until(lambda: "down" in verdict(watched, name))  # noqa: B023
            wait_until(lambda: nodes.nodes[name].ended() or nodes.nodes[name].pid is None)  # noqa: B023
            nodes.nodes[name].start()
            wait_until(lambda: all_well(watched))
        assert page.locator("#connection").text_content() == "live"


def test_a_node_shows_itself_to_those_who_have_the_token(chromium, tmp_path):
    config = mesh_config(("north", "south"), (("north", "south"),))
    with served(tmp_path / "mesh", config, with_token=True) as nodes:
        token = (tmp_path / "mesh" / "north" / "token").read_text().strip()
        nodes.client("north", token=token).learn([sample(k) for k in range(40)])
        nodes.call(nodes.nodes["north"].recorder.note, "refused", HOSTILE, HOSTILE)
        with page_of(chromium, f"http://{config.member('north').http}/") as watched:
            page = watched.page
            page.wait_for_selector("#ask:not([hidden])")
            assert watched.serious() == []
            page.fill("#token", "not-the-right-one")
            page.keyboard.press("Enter")
            wait_until(lambda: "not the right one" in page.locator("#ask-error").text_content())
            assert page.locator("#content").is_hidden()
            page.fill("#token", token)
            page.keyboard.press("Enter")
            watched.live()
            wait_until(lambda: page.locator("#network .node").count() == 2)
            wait_until(lambda: page.locator("#truth path.line[d*='L']").count() == 2)
            wait_until(
                lambda: f"refused: north: {HOSTILE}" in page.locator("#events").text_content()
            )
            page.reload()  # the token is kept in this tab
            watched.live()
            page.click("#forget")
            page.wait_for_selector("#ask:not([hidden])")
            assert token not in page.content()
            assert not [each.url for each in watched.asked if token in each.url]
            assert not any(token in path.read_text(errors="replace")
                           for path in (tmp_path / "mesh" / "north" / "data").rglob("*")
                           if path.is_file())  # fmt: skip
