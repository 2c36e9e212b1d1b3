"""Experiments: comparisons of algorithms, the reproduction of the paper, declared sweeps."""
