"""Whole experiments: algorithms side by side on the same streams, graphs and features."""
