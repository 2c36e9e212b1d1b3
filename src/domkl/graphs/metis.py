"""METIS, which cuts a graph into parts with few edges between them (the extra `mpi` brings it)."""

import numpy as np
import pymetis

from domkl.graphs.graph import Graph
from domkl.typing import Ints


def metis_parts(graph: Graph, n_parts: int) -> Ints:
    """Each learner's part, (K,). The same graph gives the same parts."""
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    _, part = pymetis.part_graph(n_parts, adjacency=adjacency)
    return np.asarray(part, dtype=np.int64)
