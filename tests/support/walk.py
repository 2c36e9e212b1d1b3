"""What a run calls in domkl, file by file, for comparison with docs/explanation/design.md."""

import re
import sys
import threading
from functools import cached_property
from itertools import groupby
from pathlib import Path

import domkl

SOURCE = str(Path(domkl.__file__).parent) + "/"
DESIGN = Path(__file__).parents[2] / "docs/explanation/design.md"


def documented(heading):
    """The entries `file:function` under a heading of docs/explanation/design.md."""
    section = DESIGN.read_text().split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    return re.findall(r"^\d+\. `([\w/]+\.py:[\w.<>]+)`", section, re.M)


class Walk:
    """Records the functions of domkl that are called while this is entered, in new threads too.

    Attributes
    ----------
    files : set of str
        All files that were called.
    entries : list of str
        `file:function` of the first call into each file, in order; properties are left out.
    returns : set of tuples
        Call stacks, as files, that leave a file and come back to it.
    """

    def __init__(self):
        self._first, self._is_on = {}, False
        self.files, self.returns = set(), set()

    def __enter__(self):
        self._properties, self._is_on = set(_properties()), True
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)
        self._is_on = False  # threads that were begun meanwhile go on calling `_profile`

    @property
    def entries(self):
        return [f"{file}:{function}" for file, function in self._first.items()]

    def as_markdown(self):
        """The list as it should stand in docs/explanation/design.md."""
        return "\n".join(f"{k}. `{entry}`" for k, entry in enumerate(self.entries, 1))

    def _profile(self, frame, event, _):
        code = frame.f_code
        if not self._is_on or event != "call" or not code.co_filename.startswith(SOURCE):
            return
        file = code.co_filename.removeprefix(SOURCE)
        self.files.add(file)
        if code not in self._properties:
            self._first.setdefault(file, code.co_qualname)
        stack = [file for file, _ in groupby(_files(frame))][::-1]
        if len(stack) > len(set(stack)):
            self.returns.add(tuple(stack))


def _files(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith(SOURCE):
            yield frame.f_code.co_filename.removeprefix(SOURCE)
        frame = frame.f_back


def _properties():
    """The code of all properties of the package."""
    modules = [module for name, module in sys.modules.items() if name.startswith("domkl")]
    kinds = {each for module in modules for each in vars(module).values() if type(each) is type}
    for kind in kinds:
        for each in vars(kind).values():
            if isinstance(each, property):
                yield each.fget.__code__
            elif isinstance(each, cached_property):
                yield each.func.__code__
