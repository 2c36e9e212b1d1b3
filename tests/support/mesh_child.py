"""A node in a process of its own: answers each frame, tells its news on stdout, one per line.

Argument: JSON with kind, name, neighbors, listen, certificates, and period, the seconds between
numbered frames to every neighbor (0: none).
"""

import asyncio
import json
import sys
from pathlib import Path

from domkl.mesh.transports.base import Address


def tell(*news):
    print(*news, flush=True)


async def main(kind, name, neighbors, listen, certificates, period):
    if kind == "tls":
        from domkl.mesh.transports.tls import TlsTransport as Kind
    else:
        from domkl.mesh.transports.zenoh import ZenohTransport as Kind
    addresses = {each: Address.parse(text) for each, text in neighbors.items()}
    transport = Kind(name, addresses, Address.parse(listen), Path(certificates))

    def on_frame(neighbor, frame):
        if period:
            tell("frame", neighbor, frame.decode())
        else:
            transport.send(neighbor, frame[:64])

    await transport.start(on_frame, lambda n, up, _: tell("up" if up else "down", n), print)
    tell("started")
    for number in range(10**9):
        await asyncio.sleep(period or 3600)
        for neighbor in neighbors:
            transport.send(neighbor, str(number).encode())


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
