"""One process per learner, neighbors only, no server.

events, model, timing      what the protocol is told, what all agree on, how long it waits
wire, edge, links          frames; one end of an edge; all edges of a learner
learner, protocol          the host of the law; the machine, without I/O
measures                   what a node knows of itself
virtual, schedules         many protocols in virtual time, and what may go wrong there
certificates, transports   who is who; moving frames
process                    a learner's process, `domkl node`
setup                      `mesh.toml` and the folders of a mesh
local                      many nodes on this machine
"""
