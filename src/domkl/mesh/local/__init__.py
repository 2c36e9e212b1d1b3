"""Many nodes on this machine: start, watch, stop, demonstrate."""
