"""Make the pictures of docs/howto/watch.md: python docs/screenshots.py

Runs ten learners as processes on the shipped traffic series, kills one and starts it again, cuts
one off, and takes pictures of the page meanwhile. Needs the extra dev, and Chromium.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from PIL import Image

from domkl.experiments.mesh_demo import dealt_traffic, demo_config, make_demo, samples_of
from domkl.mesh.operate.launcher import Launcher
from domkl.mesh.testing.relay import Relay

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))
from browser import PHONE, Watched, browser  # noqa: E402  after the path

NAMES = ("attic", "barn", "cellar", "gate", "hill", "lane", "pond", "roof", "shed", "yard")
PLACES = ((3, 9), (9, 8), (5, 5), (8, 3), (13, 9), (12, 2), (15, 5), (2, 6), (6, 1), (2, 2))
KILLED = "hill"  # the learner that is cut off is the last by name
RATE = 4  # samples a second


def run(folder: Path) -> None:
    """Run the mesh and the server of its page."""
    x, y, target = dealt_traffic(len(NAMES), 640)
    config = demo_config(NAMES, target, seed=1)
    members = [replace(m, place=p) for m, p in zip(config.members, PLACES, strict=True)]
    config = replace(config, members=tuple(members), name="farm")
    cable = make_demo(folder, config, x, y)
    options = lambda name: ("--csv", str(samples_of(folder, name)), "--rate", str(RATE))  # noqa: E731
    command = [sys.executable, "-m", "domkl", "mesh", "ui", str(folder / "mesh"), "--port", "0"]
    with cable as relay, Launcher(folder / "mesh", options=options) as nodes:
        nodes.start()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ui, browser() as made:
            try:
                story(ui.stdout.readline().strip(), nodes, relay, made)
            finally:
                ui.terminate()


def story(address: str, nodes: Launcher, relay: Relay, made: object) -> None:
    """What happens while the page is open."""
    watched = Watched(made, viewport={"width": 1360, "height": 1000}).open(address).live()
    page = watched.page
    while any(word in page.locator("#summary").text_content() for word in ("down", "starting")):
        time.sleep(0.5)
    time.sleep(30)
    nodes.nodes[KILLED].send(9)
    time.sleep(12)
    nodes.poll()
    nodes.nodes[KILLED].start()
    time.sleep(35)
    relay.cut()
    page.wait_for_selector("#network line.silent")
    time.sleep(12)
    page.select_option("#learner", KILLED)
    time.sleep(7)
    out = HERE / "images" / "watch"
    out.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=out / "mesh.png", full_page=True)
    print(f"wrote {out / 'mesh.png'}: {page.locator('#summary').text_content()}")
    watched.close()
    phone = Watched(made, viewport=PHONE, dark=True).open(address).live()
    time.sleep(4)
    phone.page.screenshot(path=out / "phone.png")
    print(f"wrote {out / 'phone.png'}")
    phone.close()
    relay.heal()
    for path in out.glob("*.png"):  # a fourth of the size, and nothing to see of it
        Image.open(path).convert("RGB").quantize(192).save(path, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="domkl-") as name:
        run(Path(name))
