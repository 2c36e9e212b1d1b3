"""One process per learner: protocol, wire, transports, node."""
