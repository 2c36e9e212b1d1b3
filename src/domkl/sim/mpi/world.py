"""MPI is started when this module is imported, as mpi4py does; so only where ranks are asked for.

The extra `mpi` brings it.
"""

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
