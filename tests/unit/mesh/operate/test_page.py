"""The page is whole, and keeps to itself."""

import re
from importlib.resources import files

import pytest

from domkl.mesh.operate.page import HEADERS, NAMES, PATHS, page_routes

STATIC = files("domkl.mesh.operate").joinpath("static")


def text(name):
    return STATIC.joinpath(name).read_text()


def test_every_file_is_listed_and_every_name_is_a_file():
    assert sorted(each.name for each in STATIC.iterdir()) == sorted(NAMES)


def test_the_page_names_only_its_own_files():
    named = re.findall(r'(?:href|src)="([^"#]+)"', text("index.html"))
    assert set(named) < set(PATHS)
    for name in NAMES:
        if name.endswith(".js"):
            for module in re.findall(r'from "\./([^"]+)"', text(name)):
                assert module in NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name != "icon.svg"])
def test_nothing_is_loaded_from_elsewhere_and_no_text_becomes_markup(name):
    content = text(name).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", content)
    words = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|\son\w+="
    assert not re.search(words, content)
    assert not re.search(r'\sstyle="|<style|localStorage|document\.cookie', content)


def test_the_policy_is_strict():
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy


def test_all_files_are_served():
    assert [route.path for route in page_routes()] == list(PATHS)
