"""Where version 0.3 had the predictions that wait: its pickles name them here."""

from domkl.learner.late import AskedRow, AskedRows

__all__ = ["AskedRow", "AskedRows"]
