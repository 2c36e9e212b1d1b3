"""Write the files of this folder, with version 0.4 of domkl.

    git worktree add ../domkl-0.4 96efeec      # release 0.4.0
    PYTHONPATH=../domkl-0.4/src python tests/data/v0.4/write.py

They are of DOMKRLS alone, which has seasons and quantiles since. The script of v0.3 writes them.
"""

import importlib.util
import sys
from pathlib import Path

import domkl
from domkl.mesh.config import settings

HERE = Path(__file__).parent


def main():
    assert domkl.__version__ == "0.4.0", domkl.__version__
    place = importlib.util.spec_from_file_location("write_0_3", HERE.parent / "v0.3" / "write.py")
    write = importlib.util.module_from_spec(place)
    place.loader.exec_module(write)
    sys.modules["domkl.mesh.config.forecasting"] = settings  # as it was called
    write.HERE, domkl.__version__ = HERE, "0.3.0"  # the version that it asks for
    write.main()


if __name__ == "__main__":
    main()
