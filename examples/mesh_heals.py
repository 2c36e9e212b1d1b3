"""A mesh that is killed and heals: five real processes, one is killed, one is cut off.

The same as `domkl mesh demo`, which has ten. The picture compares the errors with those of a
simulation in which nothing fails. Linux only; needs the extra mesh.
"""

import tempfile
from pathlib import Path

import picture

from domkl.experiments.mesh_demo import Plan, run_demo, write_figure


def main():
    """Run the mesh for half a minute, then draw what happened."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    plan = Plan(learners=5, rate=10.0, seconds=30.0)
    with tempfile.TemporaryDirectory() as folder:
        record = run_demo(Path(folder), plan, print)
    path = args.out / "mesh_heals.png"
    write_figure(path, record)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
