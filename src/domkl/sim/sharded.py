"""Where version 0.1 had `simulate_sharded`, for those who import it from here."""

from domkl.sim.mpi.run import ShardRun as ShardRun
from domkl.sim.mpi.run import simulate_sharded as simulate_sharded
