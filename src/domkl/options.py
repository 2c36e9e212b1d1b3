"""The words that options take, in functions, in sweep files and at the command line.

This module imports nothing, so that `domkl --help` can list the words without loading NumPy.
"""

#: which rows of a catalog data set are used: those that the paper's authors took, or all complete
#: ones
RULES = ("paper", "clean")

#: how values are scaled; `domkl.scaled` describes each
SCALES = ("minmax", "authors", "declared", "none")

#: how samples are dealt to learners; `domkl.deal` describes each
PARTITIONS = ("interleaved", "blocks", "shuffled")

#: what is done with a row of a user's table that has an empty cell
MISSING = ("error", "drop")

#: precision of the states of a simulation
DTYPES = ("float64", "float32")
