"""What a mesh agrees on, and the folders that say so."""
