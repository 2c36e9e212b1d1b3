"""Ways to move frames between neighbors."""
