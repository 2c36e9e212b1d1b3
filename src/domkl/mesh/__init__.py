"""A mesh: one process per learner, which exchanges messages with its neighbors; no server.

protocol     one learner's side of all exchanges, without I/O, clock or randomness
transports   move frames between processes, and authenticate their senders
node         the process of a learner, `domkl node`: protocol, transport, files, HTTP
config       `mesh.toml`, certificates, and the folders of a mesh
store        all that a node has on disk: log, checkpoints, history
operate      start and watch many nodes on one machine, back up, the page
testing      a virtual network with faults and liars
"""
