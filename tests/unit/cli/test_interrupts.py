"""Ctrl-C sets a flag, and raises unless it is held back."""

import os
import signal

import pytest

from domkl.cli.interrupts import Interrupts


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_raises_and_is_remembered():
    with Interrupts() as interrupts:
        interrupts.check()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        assert interrupts.is_set
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_a_held_block_is_not_interrupted():
    with Interrupts() as interrupts:
        with interrupts.held():
            interrupt()
            done = True
        assert done
        assert interrupts.is_set


def test_the_previous_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
