"""Pieces of work, one kind a module. An outcome carries the digest of this folder."""
