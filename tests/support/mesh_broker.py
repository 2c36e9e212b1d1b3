"""An MQTT broker for tests, in this process (`server`) or in one that can be killed (`Broker`)."""

import asyncio
import subprocess
import sys

from amqtt.broker import Broker as Server
from mesh_node import DEADLINE


def server(port):
    return Server({
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    })  # fmt: skip


class Broker:
    """A broker as a process."""

    def __init__(self, port):
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout.readline() == "up\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE)
        self.process.stdout.close()


async def _run(port):
    await server(port).start()
    print("up", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1])))
