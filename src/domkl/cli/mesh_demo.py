"""`domkl mesh demo`."""

import argparse


def demo(args: argparse.Namespace) -> int:
    """Run the demonstration."""
    raise NotImplementedError
