"""The mathematics: kernels, features, losses, and the compiled primitives of the algorithms.

A primitive sweeps any number of learners, row by row. A learner's row goes through the same
instructions whatever stands around it, so a batch equals its members to the bit.
"""
