"""Undirected networks: how to make them, how they are kept, what they weigh."""
