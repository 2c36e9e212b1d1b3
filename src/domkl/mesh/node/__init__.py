"""A learner's process: HTTP, other sources of samples, outlets, and the loop between them."""
