"""Files of earlier versions, tests/data/vX.Y, and what those versions said of them."""

import json
import platform
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np

DATA = Path(__file__).parents[1] / "data"


class OldFiles:
    """The files of one version, such as "0.2".

    Attributes
    ----------
    folder : Path
    is_writer : bool
        Whether this machine rounds as the one that wrote the files: then numbers must be equal to
        the bit.
    """

    def __init__(self, version):
        self.folder = DATA / f"v{version}"
        has = llvm.get_host_cpu_features()
        names = ",".join(sorted(name for name in has if has[name]))
        here = {
            "version": f"{version}.0",
            "processor": f"{platform.machine()} {llvm.get_host_cpu_name()} {names}",
            "numpy": np.__version__,
            "numba": numba.__version__,
        }
        self.is_writer = json.loads((self.folder / "machine.json").read_text()) == here

    def said(self, part, name=None):
        """What the version said of a part, as JSON."""
        return json.loads((self.folder / part / f"{name or part}.json").read_text())

    def same(self, found, expected, tolerance=1e-9):
        """Compare: equal to the bit on the machine that wrote the files, nearly so elsewhere."""
        found, expected = np.asarray(found), np.asarray(expected)
        if not found.size:  # JSON does not keep the other axes
            assert not expected.size
        elif self.is_writer:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
