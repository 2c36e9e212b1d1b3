"""A virtual network and random schedules of faults, for tests and benchmarks."""
