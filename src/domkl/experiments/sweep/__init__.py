"""Declared sweeps: every combination of data, graphs, algorithms and parameters, on many cores."""

#: formats of the table that a sweep writes
FORMATS = ("csv", "parquet")
