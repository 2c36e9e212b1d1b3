"""What a command writes: results under new names in each run, complete or not at all; progress."""

import argparse
import contextlib
import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from domkl.cli.interrupts import Interrupts
from domkl.cli.options import Group, option
from domkl.errors import ParameterError

OUT = "domkl-out"


def add_out_argument(parser: Group) -> None:
    """Declare ``--out``, the folder that every command that computes writes into."""
    option(parser, "--out", "DIR", "output folder", default=OUT)


def out_folder(args: argparse.Namespace) -> Path:
    """The folder that ``--out`` names."""
    if not args.out:
        raise ParameterError("out must name a folder, got ''")
    return Path(args.out)


def check_installed(extra: str, *packages: str) -> None:
    """Raise an error that names the extra, before any work is done, if a package is missing."""
    for package in packages:
        if find_spec(package) is None:
            raise ParameterError(f"{package} is not installed; pip install 'domkl[{extra}]'")


class Outbox:
    """Files, or one folder, that appear under their final names all together, at the end."""

    def __init__(self, folder: Path, draft: Path) -> None:
        self.folder = folder
        self.draft = draft
        self._suffixes: list[str] = []

    def add(self, suffix: str, write: Callable[[Path], object]) -> None:
        """Write the file with this suffix by calling ``write`` with its temporary path."""
        write(self.draft / f"file{suffix}")
        self._suffixes.append(suffix)

    def add_picture(self, write: Callable[[Path], object]) -> None:
        """Write a PNG file; without the library for it, say so and go on."""
        try:
            check_installed("plots", "matplotlib")
        except ParameterError as error:
            print(f"no picture: {error}", file=sys.stderr)
        else:
            self.add(".png", write)

    def publish(self, stem: str, interrupts: Interrupts) -> list[Path]:
        """Move all to the next free number, as in stem-001.json; never overwrite any.

        After an interrupt nothing is moved; an interrupt meanwhile waits until all are.
        """
        interrupts.check()
        with interrupts.held():
            for number in itertools.count(1):
                paths = [self.folder / f"{stem}-{number:03d}{s}" for s in self._suffixes]
                if self._take(paths):
                    break
        return paths

    def _take(self, paths: list[Path]) -> bool:
        """Move every draft to its path, or none if one of the paths is taken."""
        taken: list[Path] = []
        try:
            for suffix, path in zip(self._suffixes, paths, strict=True):
                if path.exists() or not _moved(self.draft / f"file{suffix}", path):
                    break
                taken.append(path)
        finally:
            is_whole = len(taken) == len(paths)
            for mine in taken if not is_whole else ():
                mine.unlink()
        return is_whole


def _moved(draft: Path, path: Path) -> bool:
    """Move a draft to its path, unless another process has taken that path."""
    try:
        if draft.is_dir():
            path.mkdir()
            draft.replace(path)  # atomic: the empty folder just made is replaced
            return True
        path.hardlink_to(draft)  # unlike a rename, this never replaces a file
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            shutil.copyfile(draft, path)
        except OSError:
            path.unlink(missing_ok=True)
            raise
    return True


@contextmanager
def outbox(folder: Path) -> Iterator[Outbox]:
    """Create the folder before any work is done; remove it again if the work fails."""
    made: list[Path] = []
    try:
        made = [p for p in (folder, *folder.parents) if not p.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        draft = tempfile.TemporaryDirectory(prefix=".domkl-", dir=folder)
    except OSError as error:
        remove_empty(made)
        raise ParameterError(
            f"out must be a folder that can be written, got {folder}: {error.strerror}"
        ) from None
    try:
        with draft as name:
            yield Outbox(folder, Path(name))
    finally:
        remove_empty(made)


def remove_empty(folders: list[Path]) -> None:
    """Remove those of the folders that are empty."""
    for path in folders:
        with contextlib.suppress(OSError):  # not empty, or used by another run
            path.rmdir()


def tell(paths: Iterable[Path]) -> None:
    """Say what was written."""
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


class Bar:
    """A progress bar on standard error, of bytes or with the time that is left.

    It is shown from the first update on; each update also checks for Ctrl-C.
    """

    def __init__(self, interrupts: Interrupts, *, of_bytes: bool = False) -> None:
        self._interrupts = interrupts
        self._of_bytes = of_bytes
        self._bar: Any = None

    def update(self, name: str, done: float, total: float | None) -> None:
        """Show what is being done, how much of it, and the total; raise if interrupted."""
        self._interrupts.check()
        if self._bar is None:
            self._bar = self._new_bar(done, total)
        self._bar.set_description(name, refresh=False)
        self._bar.update(max(done - self._bar.n, 0))

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _new_bar(self, done: float, total: float | None) -> Any:
        from tqdm import tqdm

        time_left = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
        style = {"unit": "B", "unit_scale": True} if self._of_bytes else {"bar_format": time_left}
        return tqdm(
            initial=done if self._of_bytes else 0,  # resumed downloads do not start at 0
            total=total,
            mininterval=0.2 if sys.stderr.isatty() else 5.0,
            file=sys.stderr,
            leave=False,
            dynamic_ncols=True,
            **style,
        )
