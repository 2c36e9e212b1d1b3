"""A mesh fed by MQTT: four real processes learn from the messages of a broker.

The broker is amqtt, on a free port of this machine. Every node listens to a topic of its own, and
a publisher sends measured traffic to all of them. A message is acknowledged when its sample is on
disk.
Linux only; needs the extras mesh and mqtt, and amqtt.
"""

import asyncio
import json
import tempfile
import time
from pathlib import Path

import aiomqtt
import numpy as np
import picture
from amqtt.broker import Broker

from domkl.experiments.mesh_demo import dealt_traffic, demo_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.operate.launcher import Launcher
from domkl.mesh.operate.status import ask

NAMES = ("attic", "barn", "cellar", "gate")
N_SAMPLES, PATIENCE = 300, 90.0
ANYONE = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}


async def broker_on(port):
    """A broker on loopback that lets everybody in."""
    listeners = {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}}
    made = Broker({"listeners": listeners, "plugins": ANYONE})
    await made.start()
    return made


async def until(condition):
    """Wait for other processes, not for ever."""
    deadline = time.monotonic() + PATIENCE
    while not await asyncio.to_thread(condition):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition.__name__} within {PATIENCE:g} s")
        await asyncio.sleep(0.2)


async def feed(port, x, y):
    """Publish every learner's samples, each with an id: MQTT may deliver twice."""
    async with aiomqtt.Client("127.0.0.1", port) as client:
        for t in range(len(y)):
            for k, name in enumerate(NAMES):
                sample = {"x": x[t, k].tolist(), "y": float(y[t, k]), "id": f"{name}-{t}"}
                await client.publish(f"traffic/{name}", json.dumps(sample), qos=1)


async def story(folder):
    """Run broker, mesh and publisher; return the newest samples of every node."""
    x, y, target = dealt_traffic(len(NAMES), N_SAMPLES)
    x, y = x[:N_SAMPLES], y[:N_SAMPLES]
    config = demo_config(NAMES, target, seed=1)
    init_mesh(folder / "mesh", config)
    port = config.members[-1].http.port + 1
    broker = await broker_on(port)

    def options(name):
        return ("--mqtt", f"mqtt://127.0.0.1:{port}", "--topic", f"traffic/{name}")

    def states():
        return [ask(member, folder / "mesh") or {} for member in config.members]

    def all_listen():
        return len(broker.subscriptions) == len(NAMES)

    def all_learned():
        return all(state.get("n_learned", 0) >= N_SAMPLES for state in states())

    with Launcher(folder / "mesh", options=options) as nodes:
        nodes.start()
        await until(all_listen)
        print(f"{len(NAMES)} nodes listen to their topics; publishing {y.size} samples")
        await feed(port, x, y)
        await until(all_learned)
        recent = [ask(member, folder / "mesh", "/recent") for member in config.members]
        await asyncio.to_thread(nodes.stop)
    await broker.shutdown()
    return recent


def main():
    """Draw prediction against truth at one node, and the errors of all."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recent = asyncio.run(story(Path(folder)))
    figure, (curves, bars) = picture.panels(2, width=10)
    tables = [np.array(rows, dtype=float) for rows in recent]
    label, predicted, deviation = tables[0][-80:, 2:5].T
    rounds = np.arange(len(tables[0]) - 80, len(tables[0]))
    curves.plot(rounds, label, "o", color="0.3", markersize=3, label="measured")
    curves.plot(rounds, predicted, color=picture.OURS, label="predicted before")
    band = predicted - 1.96 * deviation, predicted + 1.96 * deviation
    curves.fill_between(rounds, *band, color=picture.OURS, alpha=0.15, linewidth=0)
    curves.set(xlabel="samples", ylabel="vehicles an hour", title=f"{NAMES[0]}, its newest samples")
    curves.legend(frameon=False)
    columns = {
        "its last label": (6, picture.NAIVE),
        "alone": (5, picture.ALONE),
        "network": (3, picture.OURS),
    }
    for i, (name, (column, color)) in enumerate(columns.items()):
        errors = [picture.rms(table[50:, column] - table[50:, 2]) for table in tables]
        bars.bar(np.arange(len(NAMES)) + 0.27 * (i - 1), errors, 0.25, color=color, label=name)
        print(f"{name:15}RMSE after 50 samples {picture.rms(errors):.0f} vehicles an hour")
    bars.set_xticks(range(len(NAMES)), NAMES)
    bars.set(ylabel="RMSE after 50 samples", ylim=(0, 1.4 * bars.get_ylim()[1]))
    bars.legend(frameon=False)
    picture.save(figure, args.out, "mesh_mqtt")


if __name__ == "__main__":
    main()
