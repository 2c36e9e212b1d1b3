"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip
WIDE, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 60_000  # milliseconds


def chromium():
    """Where the browser is; None if there is none."""
    return os.environ.get("DOMKL_CHROMIUM") or shutil.which("chromium")


def missing():
    """Why there can be no browser; None if there can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "needs playwright: pip install -e '.[dev]'"
    return None if chromium() else "needs chromium: apt-get install chromium, or set DOMKL_CHROMIUM"


@contextmanager
def browser():
    """The browser, while the context lasts."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            yield made
        finally:
            made.close()


class Watched:
    """A page, and all that it asked for and complained of."""

    def __init__(self, made, *, viewport=WIDE, dark=False):
        scheme = "dark" if dark else "light"
        self.context = made.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.asked, self.complaints = [], []
        self.page.on("request", lambda request: self.asked.append(request))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._on_console)

    def _on_console(self, message):
        # the browser itself reports requests that fail while a server is away or wants a token
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def open(self, address):
        self.page.goto(address)
        return self

    def live(self):
        self.page.wait_for_selector("#connection.live")
        return self

    @property
    def hosts(self):
        return {urlsplit(each.url).netloc for each in self.asked}

    def serious(self):
        """What axe-core finds that would keep someone from using the page."""
        import axe_playwright_python

        source = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
        self.page.evaluate(source)
        found = self.page.evaluate("() => axe.run()")["violations"]
        return [
            (each["id"], [node["html"][:200] for node in each["nodes"]])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    def close(self):
        self.context.close()
