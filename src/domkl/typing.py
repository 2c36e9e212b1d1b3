"""Array aliases. Axes always come in the order time, learner, kernel, feature."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: a number of any real type, as compiled functions take and give it
Number = float | np.floating[Any]

Array = NDArray[np.floating[Any]]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Real = Literal["float64", "float32"]

Seed = int | np.random.Generator
