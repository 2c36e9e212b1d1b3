"""The protocol of a mesh without I/O: rounds, edges, frames, and one learner's state."""
