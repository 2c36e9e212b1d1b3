"""Undirected networks: how they are made, stored and divided."""
