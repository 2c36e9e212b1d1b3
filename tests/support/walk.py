"""What a run calls in domkl, file by file, beside the list in docs/design.md."""

import re
import sys
import threading
from itertools import groupby
from pathlib import Path

import domkl

SOURCE = str(Path(domkl.__file__).parent) + "/"
DESIGN = Path(__file__).parents[2] / "docs" / "design.md"


def documented(heading):
    """The entries `file:function` under a heading of docs/design.md."""
    section = DESIGN.read_text().split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    return re.findall(r"^\d+\. `([\w/]+\.py:[\w.<>]+)`", section, re.M)


class Walk:
    """Records the functions of domkl that are called while this is entered, in any thread.

    Attributes
    ----------
    entries : list of str
        `file:function` of the first call into each file, in order.
    returns : set of tuples
        Call stacks, as files, that leave a file and come back to it.
    """

    def __init__(self):
        self.first, self.returns = {}, set()

    def __enter__(self):
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    @property
    def entries(self):
        return [f"{file}:{function}" for file, function in self.first.items()]

    def _profile(self, frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SOURCE):
            return
        self.first.setdefault(code.co_filename.removeprefix(SOURCE), code.co_qualname)
        stack = [file for file, _ in groupby(_files(frame))][::-1]
        if len(stack) > len(set(stack)):
            self.returns.add(tuple(stack))


def _files(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith(SOURCE):
            yield frame.f_code.co_filename.removeprefix(SOURCE)
        frame = frame.f_back
