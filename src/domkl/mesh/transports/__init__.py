"""Transports: they move frames between neighbors. `registry` lists those that a mesh can use."""
