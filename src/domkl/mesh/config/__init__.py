"""What a mesh agrees on, and the folders that say so."""

#: the file that all learners of a mesh share
MESH = "mesh.toml"
#: how long certificates are valid, unless otherwise asked for
DAYS = 365
