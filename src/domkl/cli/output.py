"""A folder for results: new names each run, whole files or none."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from domkl.errors import ParameterError


class Outbox:
    """Files that appear under their final names all together, at the end."""

    def __init__(self, folder: Path, draft: Path) -> None:
        self.folder = folder
        self.draft = draft
        self._suffixes: list[str] = []

    def add(self, suffix: str, write: Callable[[Path], None]) -> None:
        """Let ``write`` make the file that will end in this suffix."""
        write(self.draft / f"file{suffix}")
        self._suffixes.append(suffix)

    def publish(self, stem: str) -> list[Path]:
        """Give all files the next free number: stem-001.json and so on, never over older ones."""
        number = 1
        while True:
            paths = [self.folder / f"{stem}-{number:03d}{s}" for s in self._suffixes]
            if self._take(paths):
                return paths
            number += 1

    def _take(self, paths: list[Path]) -> bool:
        """Link every draft to its name; give all names back if one is taken or cannot be had."""
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
    """Give a draft its name unless somebody else was faster."""
    try:
        path.hardlink_to(draft)  # unlike a rename, never over a file
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            shutil.copyfile(draft, path)
        except OSError:
            path.unlink(missing_ok=True)
            raise
    return True


class Draft:
    """A folder that appears under its final name when it is complete."""

    def __init__(self, folder: Path, parent: Path, stem: str) -> None:
        self.folder = folder
        self._parent, self._stem = parent, stem

    def publish(self) -> Path:
        """Give it the next free number: stem-001 and so on, never over an older one."""
        number = 1
        while True:
            path = self._parent / f"{self._stem}-{number:03d}"
            try:
                path.mkdir()
                break
            except FileExistsError:
                number += 1
        self.folder.chmod(path.stat().st_mode)
        self.folder.replace(path)  # an empty folder may be replaced, at once
        return path


@contextmanager
def new_folder(parent: Path, stem: str) -> Iterator[Draft]:
    """A folder to be filled and published; gone without a trace otherwise."""
    with outbox(parent) as box:
        folder = box.draft / stem
        folder.mkdir()
        yield Draft(folder, parent, stem)


@contextmanager
def outbox(folder: Path) -> Iterator[Outbox]:
    """Make sure of the folder now, before any work; leave no trace of it if the work fails."""
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
    """Remove those of the folders that hold nothing."""
    for path in folders:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
