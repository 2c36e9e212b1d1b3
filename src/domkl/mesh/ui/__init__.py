"""The live page of a mesh, and the server that `domkl mesh ui` runs."""
