"""Every example runs, and ends in the picture that the gallery shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HELPERS = {"picture", "sign_gossip"}
EXAMPLES = sorted(
    path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in HELPERS
)
NEEDS_DATA = {"homes"}
LARGEST = 300_000  # bytes of a picture that is committed


def run(name, out, **environment):
    script = ROOT / "examples" / f"{name}.py"
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(script), "--out", str(out)],
        cwd=out,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def check_picture(path):
    with Image.open(path) as made:
        assert min(made.size) >= 300
        colors = made.convert("RGB").getcolors(maxcolors=2**24)
    assert len(colors) > 20  # not an empty page


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in NEEDS_DATA])
def test_it_ends_in_a_picture(name, tmp_path):
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr
    check_picture(tmp_path / f"{name}.png")


def test_homes_end_in_a_picture(tmp_path, data_dir):
    done = run("homes", tmp_path, DOMKL_DATA=str(data_dir))
    assert done.returncode == 0, done.stderr
    check_picture(tmp_path / "homes.png")


def test_homes_say_that_their_data_are_missing(tmp_path):
    done = run("homes", tmp_path, DOMKL_DATA=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 3
    assert "homes need their data" in done.stderr
    assert "domkl data fetch" in done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_gallery_shows_it(name):
    page = (ROOT / "docs/examples/index.md").read_text()
    assert f"](../images/examples/{name}.png)" in page
    assert f"../../examples/{name}.py" in page
    picture = ROOT / "docs/images/examples" / f"{name}.png"
    assert picture.stat().st_size < LARGEST
    check_picture(picture)
