"""Everything that a node keeps on disk: samples, checkpoints, its history, its folder."""
