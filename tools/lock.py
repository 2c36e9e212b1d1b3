"""Write requirements.lock: the versions of constraints.txt, with the hashes of their wheels.

    python tools/lock.py                       # asks the package index that pip is set up for
    pip install --require-hashes -r requirements.lock && pip install --no-deps .

The hashes are those of the wheels for Linux on x86-64 and Python 3.11 to 3.14. An editable install
refuses constraints with hashes, so they are in a file of their own.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CONSTRAINTS, LOCK = "constraints.txt", "requirements.lock"
PYTHONS = ("3.11.9", "3.12.9", "3.13.9", "3.14.2")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
HEAD = """\
# Made by tools/lock.py from constraints.txt: wheels for Linux on x86-64, Python 3.11 to 3.14.
# pip install --require-hashes -r requirements.lock && pip install --no-deps .
"""


def pinned(text: str) -> dict[str, str]:
    """The version of each package in constraints.txt, by its normal name."""
    rows = re.findall(r"^([\w.-]+)==(\S+)$", text, re.M)
    return {normal(name): version for name, version in rows}


def normal(name: str) -> str:
    """The name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def found(report: Any) -> Iterable[tuple[str, str, str]]:
    """Name, version and SHA-256 of what pip's report would install."""
    for item in report["install"]:
        name, version = (item["metadata"][key] for key in ("name", "version"))
        yield normal(name), version, item["download_info"]["archive_info"]["hashes"]["sha256"]


def locked(pins: dict[str, str], reports: Iterable[Any]) -> str:
    """The content of the lock file; ValueError if a version differs or has no hash."""
    hashes: dict[str, set[str]] = {name: set() for name in pins}
    for report in reports:
        for name, version, digest in found(report):
            if pins.get(name) != version:
                raise ValueError(f"{name} must have version {pins.get(name)}, got {version}")
            hashes[name].add(digest)
    bare = [name for name, digests in hashes.items() if not digests]
    if bare:
        raise ValueError(f"every package must have a hash, and these have none: {', '.join(bare)}")
    rows = [
        " \\\n".join(
            [f"{name}=={pins[name]}", *(f"    --hash=sha256:{d}" for d in sorted(digests))]
        )
        for name, digests in sorted(hashes.items())
    ]
    return HEAD + "\n".join(rows) + "\n"


def report_of(python: str, root: Path) -> Any:
    """What pip would install for a Python; nothing is installed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--dry-run", "--no-deps", "--only-binary=:all:", "--python-version", python,
                 *(word for name in PLATFORMS for word in ("--platform", name)),
                 "--target", folder, "--report", str(path), "-r", CONSTRAINTS]  # fmt: skip
        subprocess.run(words, cwd=root, check=True, stderr=subprocess.DEVNULL)
        return json.loads(path.read_text())


def main(root: Path = ROOT) -> int:
    """Write the file."""
    pins = pinned((root / CONSTRAINTS).read_text())
    text = locked(pins, [report_of(python, root) for python in PYTHONS])
    (root / LOCK).write_text(text)
    print(f"{LOCK}: {len(pins)} packages, {text.count('--hash')} hashes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
