"""A learner's process: journal, checkpoints, HTTP, other sources, and the loop between them."""
