"""One network over the ranks of MPI."""
