"""Write the files of this folder, with version 0.3 of domkl.

    git worktree add ../domkl-0.3 e67c443      # release 0.3.0
    PYTHONPATH=../domkl-0.3/src python tests/data/v0.3/write.py

They are of DOMKRLS alone, which has another law since. The script of v0.2 writes them, under the
names that modules have in 0.3:

    learners/  two learners and three estimators, as files and as pickles; predictions of the
               third, river-late, wait for labels that come three samples late
    states/    run.state of `simulate`, without and with a delay
    nodes/     folders of two nodes without neighbors
"""

import json
import os
import pickle
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import domkl
import domkl.mesh.node
from domkl.estimators import river
from domkl.mesh.node import intake
from domkl.mesh.node import node as nodes_module
from domkl.mesh.operate import backup
from domkl.mesh.store import folder, recorder, wal

HERE = Path(__file__).parent
DELAY = 3
KEPT = ("sklearn-regressor", "river-two-classes")


def writer():
    """The script of v0.2, which writes here."""
    moved = {"history.recorder": recorder, "local.backup": backup, "node.folder": folder}
    sys.modules.update({f"domkl.mesh.{name}": module for name, module in moved.items()})
    domkl.mesh.node.wal = wal
    intake.Given = SimpleNamespace(read=lambda given: given)
    sys.path.insert(0, str(HERE.parent / "v0.2"))
    import write

    write.HERE = HERE
    write.LEARNERS = {"domkrls": domkl.DOMKRLS()}
    write.STATES = {"domkrls": domkl.DOMKRLS()}
    write.NODES = {name: write.NODES[name] for name in ("table", "delayed")}
    return write


def main():
    assert domkl.__version__ == "0.3.0", domkl.__version__
    for each in HERE.iterdir():
        if each.is_dir() and each.name != "__pycache__":
            shutil.rmtree(each)
    write = writer()
    nodes_module.SAVE_BYTES = 10**9  # a checkpoint is worth its size after every sample
    nodes_module.time.time_ns = lambda: write.NOON * 10**9
    recorder.Recorder.__init__.__kwdefaults__["clock"] = write.CLOCK
    os.umask(0o022)
    for part in (write.machine, write.learners, write.states, write.nodes):
        part()
    path = HERE / "learners" / "estimators.json"
    said = json.loads(path.read_text())
    for name in said.keys() - set(KEPT):
        for each in path.parent.glob(f"{name}.*"):
            each.unlink()
    kept = {name: said[name] for name in KEPT} | {"river-late": late(write)}
    write.write_json(path, kept)


def late(write):
    """Write an estimator whose labels come late; give what it predicts then."""
    X, y = write.samples(90)
    rows, path = [write.named(row) for row in X], HERE / "learners" / "river-late"
    made = river.OnlineKernelRegressor(bank=write.BANK, n_frequencies=2)

    def follow(model, numbers):
        told = []
        for i in numbers:
            told.append(model.predict_one(rows[i]))
            if i >= DELAY:
                model.learn_one(rows[i - DELAY], y[i - DELAY])
        return told

    follow(made, range(70))
    made.save(path.with_suffix(".npz"))
    path.with_suffix(".pickle").write_bytes(pickle.dumps(made))
    return {"later": follow(type(made).load(path.with_suffix(".npz")), range(70, 90))}


if __name__ == "__main__":
    main()
