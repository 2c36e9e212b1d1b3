"""Opens a node's write-ahead log, and repairs it where it is damaged and nothing is lost by that.

The rules of this file
----------------------
- No acknowledged sample is lost without a line in the node's log that says how many were lost.
- Where acknowledged samples are missing, the node does not start, unless its operator accepts the
  loss (``domkl node --accept-loss``). Nothing on disk is changed before that.
- A repair writes a new log of all samples that can still be read, with numbers without gaps,
  and keeps the old one beside it under another name. A repair that is interrupted is completed, or
  begun anew, at the next start.
- If no checkpoint can be read, the node begins as a new learner with the samples in the log: to go
  on with less is better than not to go on. How many learned samples it forgets is written, too.
"""

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from domkl.errors import DataError
from domkl.mesh.process_log import event
from domkl.mesh.store.checkpoint import Checkpoints, Saved
from domkl.mesh.store.wal import Content, DamagedError, Entry, Mark, WriteAheadLog
from domkl.storage import sync_folder

LOG, NEW, MARK = "journal", "journal.new", "acknowledged"  # names on disk, as of 0.1
ABOUT = "write-ahead log"  # what lines in the node's log are about, as an event or a kind of alarm
AT_ONCE = 256  # samples of a frame of a repaired log

Numbered = tuple[int, Entry]


class Opened(NamedTuple):
    """A log that can be used."""

    log: WriteAheadLog
    position: int  # number of the sample after which to go on
    n_lost: int  # samples that were acknowledged and are neither learned nor in the log


def open_log(
    folder: Path, width: int, checkpoints: Checkpoints, accept_loss: bool = False
) -> Opened:
    """Open the log of a data folder; DataError if acknowledged samples would be lost by it."""
    _complete_repair(folder)
    mark, known = Mark(folder / MARK), checkpoints.saved or Saved()
    n_known = known.counts.get("accepted", 0)
    # a loss that was accepted lowers the mark, but not what an older checkpoint says
    acknowledged = max(n_known if mark.number is None else mark.number, known.position)
    if mark.number is None and n_known:
        text = f"{mark.path} is missing or damaged; samples after {acknowledged} cannot be counted"
        event("alarm", logging.WARNING, kind=ABOUT, text=text)
    try:
        log = _open_sound(folder / LOG, width, mark, known.position, acknowledged)
        opened = Opened(log, known.position, 0)
    except DamagedError as damage:
        opened = _recover(folder, width, mark, checkpoints, acknowledged, accept_loss, str(damage))
    if opened.log.n_cut:
        text = "the end of the write-ahead log was cut off: it was never acknowledged"
        event(ABOUT, samples=opened.log.n_cut, text=text)
    _begin(mark, opened.log.last)
    return opened


def _open_sound(
    folder: Path, width: int, mark: Mark, position: int, acknowledged: int
) -> WriteAheadLog:
    """The log, if it has all samples after the checkpoint; else DamagedError."""
    log = WriteAheadLog(folder, width, mark, position)
    if not log.last and mark.number is not None:
        log.skip_to(position)
    if log.first > position + 1 or log.last < acknowledged:
        log.close()
        raise DamagedError(
            f"{log} has samples {log.first} to {log.last}, the checkpoint ends with"
            f" {position}, and samples up to {acknowledged} were accepted"
        )
    return log


def _begin(mark: Mark, last: int) -> None:
    try:
        mark.begin(last)
    except OSError as error:
        text = f"{mark.path} cannot be written: {error.strerror}; a loss could not be counted"
        event("alarm", logging.WARNING, kind=ABOUT, text=text)


def _recover(
    folder: Path, width: int, mark: Mark, checkpoints: Checkpoints, acknowledged: int,
    accept_loss: bool, damage: str,
) -> Opened:  # fmt: skip
    """Repair the log, or say why that would lose samples."""
    found, saved = salvage(folder / LOG, width), checkpoints.saved
    position = known = 0 if saved is None else saved.position
    if mark.number is None:
        acknowledged = max(acknowledged, _claimed(folder / LOG, found, position))
    if found and saved is None and (checkpoints.damaged or accept_loss):
        position = found[0][0] - 1
    kept = [(number, entry) for number, entry in found if number > position]
    newest = max(acknowledged, found[-1][0] if found else 0)
    n_missing = newest - position - len(kept)
    n_lost = n_missing + position - known
    if n_missing and not accept_loss:
        text = (
            f"{damage}. Of {newest} acknowledged samples {n_missing} are lost"
            f" ({_ranges(position, kept, newest)}); restore the data folder from a backup, or start"
            " with --accept-loss to go on without them"
        )
        event("refused to start", logging.ERROR, lost=n_missing, text=text)
        raise DataError(text)
    if n_lost:
        text = f"{damage}; the node goes on without them ({_ranges(known, kept, newest)})"
        event("samples lost", logging.ERROR, lost=n_lost, text=text)
    else:
        text = f"{damage}; no acknowledged sample is lost: all are learned or can be read"
        event("alarm", logging.WARNING, kind=ABOUT, text=text)
    _rebuild(folder, width, position, [*_before(found, position), *kept])
    mark.set(position + len(kept))
    log = WriteAheadLog(folder / LOG, width, mark, position)
    log.skip_to(position)
    return Opened(log, position, n_lost)


def salvage(folder: Path, width: int) -> list[Numbered]:
    """All samples of a log that can be read, with their numbers, in order."""
    found: dict[int, Entry] = {}
    for path in sorted(folder.glob("*.log")):
        content = Content.of(path.read_bytes())
        if content is not None and content.width != width:
            raise DataError(
                f"{path} has samples of {content.width} values, and mesh.toml says {width}"
            )
        found |= {} if content is None else dict(content.entries())
    return sorted(found.items(), key=lambda each: each[0])


def _claimed(folder: Path, found: list[Numbered], position: int) -> int:
    """The number of the last sample that may have been acknowledged, if no mark says it.

    A whole frame at the end that is damaged may have been. Without a log at all, a sample after
    the checkpoint may have been, at least.
    """
    paths, last = sorted(folder.glob("*.log")), found[-1][0] if found else 0
    content = Content.of(paths[-1].read_bytes()) if paths else None
    if content is not None and content.torn is not None and content.torn.is_whole:
        return last + max(1, content.torn.n_samples)
    return position + 1 if position and last < position else last


def _before(found: list[Numbered], position: int) -> list[Numbered]:
    """Samples up to the position without a gap before it: their ids must be remembered."""
    before: list[Numbered] = []
    for number, entry in reversed(found):
        if number == position - len(before):
            before.append((number, entry))
    return before[::-1]


def _ranges(position: int, kept: Iterable[Numbered], newest: int) -> str:
    """The numbers that are missing, as text.

    >>> _ranges(3, [(4, None), (7, None)], 9)
    'numbers 5 to 6, 8 to 9'
    """
    parts, last = [], position
    for number in [*(number for number, _ in kept), newest + 1]:
        if number > last + 1:
            parts.append(f"{last + 1} to {number - 1}" if number > last + 2 else f"{last + 1}")
        last = number
    more = f" and {len(parts) - 10} more" if len(parts) > 10 else ""
    return "numbers " + ", ".join(parts[:10]) + more


def _rebuild(folder: Path, width: int, position: int, entries: list[Numbered]) -> None:
    """Replace the log by one of these samples, numbered without gaps around the position."""
    new = folder / NEW
    log = WriteAheadLog(new, width)
    n_before = sum(number <= position for number, _ in entries)
    log.skip_to(position - n_before)
    for k in range(0, len(entries), AT_ONCE):
        log.append([entry for _, entry in entries[k : k + AT_ONCE]])
    log.close()
    sync_folder(new)
    _swap(folder)


def _swap(folder: Path) -> None:
    """Keep the old log under another name, and use the new one."""
    log = folder / LOG
    if log.exists() and not any(log.iterdir()):
        log.rmdir()
    elif log.exists():
        n = sum(1 for _ in folder.glob("journal.damaged-*"))
        log.rename(folder / f"journal.damaged-{n + 1}")
    (folder / NEW).rename(log)
    sync_folder(folder)


def _complete_repair(folder: Path) -> None:
    """If a kill interrupted `_swap`, complete it; a new log that is not complete goes."""
    if (folder / NEW).exists():
        if (folder / LOG).exists():
            shutil.rmtree(folder / NEW)
        else:
            _swap(folder)
