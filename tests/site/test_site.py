"""The site builds without a warning, loads nothing from elsewhere, and serves readers on phones."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import browser
import pytest

import domkl

pytest.importorskip("sphinx", reason="needs the extra docs: pip install -e '.[docs]'")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LARGEST = 30_000_000  # bytes of the whole site
#: attributes by which a page makes the browser ask for something
LOADING = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}


class Page(HTMLParser):
    """What a page loads, where it leads, and the ids in it."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.leads, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if (tag, name) in LOADING:
                self.loads.append(value)
            if (tag, name) == ("a", "href"):
                self.leads.append(value)
            if name == "id":
                self.ids.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    made = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
    )
    assert (made.returncode, made.stderr) == (0, ""), made.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    found = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    assert len(found) > 40
    return found


def test_it_is_small(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LARGEST


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for path, page in pages.items():
        for address in page.loads:
            assert not urlsplit(address).netloc, f"{path.name} loads {address}"
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import\s)['\"]?(https?:)?//", path.read_text()), path


def test_links_lead_to_pages_and_headings(site, pages):
    for path, page in pages.items():
        for address in page.leads:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.relative_to(site)} leads to {address}"
            if parts.fragment and target in pages:
                known = pages[target].ids
                assert unquote(parts.fragment) in known, f"{path.relative_to(site)}: {address}"


def test_every_public_name_is_described(pages):
    ids = set().union(*(page.ids for page in pages.values()))
    assert {name for name in domkl.__all__ if name != "__version__"} <= {
        each.removeprefix("domkl.") for each in ids
    }


@pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))
def test_search_works_from_a_folder_and_no_page_is_wider_than_a_phone(site, pages):
    with browser.browser() as made:
        watched = browser.Watched(made, viewport=browser.PHONE)
        page = watched.page
        page.goto((site / "search.html").as_uri() + "?q=horizon")
        page.wait_for_selector("#search-results li a[href*='howto/forecast.html']")  # one by one
        for path in pages:
            page.goto(path.as_uri())
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= browser.PHONE["width"], path.relative_to(site)
        assert watched.complaints == []
        assert all(request.url.startswith(("file:", "data:")) for request in watched.asked)
