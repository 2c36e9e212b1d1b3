"""Write the files of this folder, with version 0.5 of domkl.

    git worktree add ../domkl-0.5 7ccc488      # release 0.5.0
    PYTHONPATH=../domkl-0.5/src python tests/data/v0.5/write.py

They are of DOMKRLS alone, which has a shorter law since. The script of v0.3 writes them; besides,
the learner domkrls-season sees a period.
"""

import importlib.util
import sys
from pathlib import Path

import domkl
from domkl.mesh.config import settings

HERE = Path(__file__).parent


def main():
    assert domkl.__version__ == "0.5.0", domkl.__version__
    place = importlib.util.spec_from_file_location("write_0_3", HERE.parent / "v0.3" / "write.py")
    write = importlib.util.module_from_spec(place)
    place.loader.exec_module(write)
    sys.modules["domkl.mesh.config.forecasting"] = settings  # as it was called
    write.HERE, domkl.__version__ = HERE, "0.3.0"  # the version that it asks for
    of_before = write.writer

    def writer():
        domkl.__version__ = "0.5.0"
        made = of_before()
        made.LEARNERS["domkrls-season"] = domkl.DOMKRLS(newest_lag=0, period=6)
        return made

    write.writer = writer
    write.main()


if __name__ == "__main__":
    main()
