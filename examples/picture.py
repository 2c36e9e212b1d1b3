"""Shared by the examples: where pictures are written, and how curves are smoothed."""

import argparse
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

#: colors of Okabe and Ito, which color-blind readers can distinguish
OURS, ALONE, NAIVE, OTHER = "#0072B2", "#E69F00", "#999999", "#009E73"
DPI = 90


def options(description):
    """A parser that knows where to put the picture."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    return parser


def panels(n=1, width=7.5, height=3.8):
    """A figure with n panels side by side."""
    figure, axes = plt.subplots(1, n, figsize=(width, height), layout="constrained")
    for axis in np.atleast_1d(axes):
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure, out, name):
    """Write the picture and say where it is."""
    path = out / f"{name}.png"
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    print(f"wrote {path}")


def rms(errors, axis=None):
    """Root mean square of the errors that are known."""
    return np.sqrt(np.nanmean(np.square(errors), axis=axis))


def moving_rms(errors, window):
    """Root mean square over the last ``window`` errors."""
    squares = np.cumsum(np.concatenate([[0.0], np.square(errors)]))
    return np.sqrt((squares[window:] - squares[:-window]) / window)
