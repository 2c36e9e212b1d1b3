"""The algorithms, one page each: parameters, state, message, and the law that moves them."""
