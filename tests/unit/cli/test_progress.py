"""Progress bars go to standard error, and notice interrupts."""

import pytest

from domkl.cli.interrupts import Interrupts
from domkl.cli.output import Bar


def test_a_bar_shows_the_last_update(capsys):
    with Bar(Interrupts()) as bar:
        bar.update("first", 0, 4)
        bar.update("second", 4, 4)
        bar.update("back", 1, 4)  # never backwards
        assert bar._bar.n == 4
    assert capsys.readouterr().out == ""


def test_a_bar_of_bytes_starts_where_a_download_is_resumed(capsys):
    with Bar(Interrupts(), of_bytes=True) as bar:
        bar.update("file", 300, None)
        assert (bar._bar.initial, bar._bar.unit) == (300, "B")
        bar.update("file", 400, None)
        assert bar._bar.n == 400


def test_an_update_notices_an_interrupt():
    interrupts = Interrupts()
    interrupts.is_set = True
    with Bar(interrupts) as bar, pytest.raises(KeyboardInterrupt):
        bar.update("first", 0, 1)
