"""Keep a node small: leave out what it does not need, and give back what only its start needed.

Numba imports parts of SciPy where it is installed, for matrix products that no algorithm of domkl
has. A node goes on as if SciPy were not installed (`leave_out`), which saves 12 MiB and 0.15 s.

To load stored binaries Numba starts LLVM, which touches some 60 MiB of its library and is not used
again. These are pages of a file, unchanged: the kernel can drop them at any time and read them
again. `release` tells it that now is the time, as it would find out by itself when memory is short.
What is in use comes back by itself, page by page. Freed parts of the heap are returned as well.
"""

import contextlib
import ctypes
import gc
import mmap
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from domkl.text import from_toml

#: what Numba imports where it is installed, and no algorithm of domkl needs; yaml is for a file of
#: settings of Numba's own, which warns if there is such a file
UNUSED = ("scipy", "cffi", "yaml")
MAPS = Path("/proc/self/smaps")
_HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) [0-9a-f]+ \S+ \d+ +(/.*)")


class Mapping(NamedTuple):
    """A part of a file in the memory of this process."""

    start: int
    size: int
    rights: str  # such as r-xp
    path: str
    resident: int  # KiB
    changed: int  # KiB of pages that are no longer the file's

    @property
    def is_clean(self) -> bool:
        """Whether the file has every byte of it, and nothing here can write to it."""
        return self.changed == 0 and "w" not in self.rights and self.rights.endswith("p")


def leave_out(mesh_file: Path) -> None:
    """Let imports of `UNUSED` fail in this process from now on, as if they were not installed.

    An algorithm of the user's own may need them: for such a mesh nothing is left out.
    """
    try:
        model: Any = from_toml(mesh_file.read_text()).get("model", {})
    except (OSError, ValueError):  # of which the reader of the file will say more
        return
    if ":" not in str(model.get("algorithm", "") if isinstance(model, dict) else ""):
        modules: dict[str, Any] = sys.modules
        for name in UNUSED:
            modules.setdefault(name, None)  # by which Python raises ModuleNotFoundError


@contextlib.contextmanager
def to_stay() -> Iterator[None]:
    """Look for no garbage in what is imported meanwhile, now or later: modules stay."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def mappings(lines: Iterable[str]) -> Iterator[Mapping]:
    """Read what Linux says of the mapped files of a process, /proc/PID/smaps."""
    head: re.Match[str] | None = None
    resident = 0
    for line in lines:
        if not line[0].isupper():  # fields are, a mapping begins with its address
            head = _HEAD.match(line)
        elif head is not None and line.startswith("Rss:"):
            resident = int(line.split()[1])
        elif head is not None and line.startswith("Anonymous:"):
            start, end = int(head[1], 16), int(head[2], 16)
            yield Mapping(start, end - start, head[3], head[4], resident, int(line.split()[1]))


def settle() -> None:
    """Give back what only the start needed; what is there now stays, and is no garbage."""
    gc.collect()
    gc.freeze()  # of the compiler's many objects; to scan them again would cost milliseconds
    release()


def release() -> None:
    """Give back unchanged pages of files and freed parts of the heap; nothing off Linux."""
    libc = ctypes.CDLL(None)
    if not MAPS.exists() or not hasattr(libc, "malloc_trim"):  # glibc has it
        return
    libc.malloc_trim(0)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with MAPS.open() as lines:
        found = [each for each in mappings(lines) if each.is_clean and each.resident]
    for each in found:
        libc.madvise(each.start, each.size, mmap.MADV_DONTNEED)
