"""A node that lies: ``python lying_node.py "scale=-1 since=50" node FOLDER``, and options."""

import sys

from domkl.cli.main import main
from domkl.mesh.node.node import Node
from domkl.mesh.protocol.events import Send
from domkl.mesh.testing.liars import Liar, Lie


def lie_as(lie):
    """Let the nodes of this process change their offers."""
    liar, honest = Liar(lie), Node._carry_out

    def carry_out(self, effects, channel=0):
        protocol = self.protocols[channel]
        edges = protocol.edges.by_peer

        def told(effect):
            if not isinstance(effect, Send) or effect.peer not in edges:
                return effect
            given = protocol.learned, protocol.edges.offers, effect.peer, edges[effect.peer].newest
            return effect._replace(data=liar.change(effect.data, *given))

        honest(self, [told(each) for each in effects], channel)

    Node._carry_out = carry_out


if __name__ == "__main__":
    lie_as(Lie.parse(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
