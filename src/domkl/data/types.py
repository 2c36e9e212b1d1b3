"""Types that the catalog, the readers and the rows share; loads no library."""

import math
from typing import NamedTuple

#: lowest and highest value that a column can have, by what it measures
Bounds = tuple[float, float]


class Station(NamedTuple):
    """A node and its place."""

    name: str
    latitude: float = math.nan  # degrees; NaN where it is not known
    longitude: float = math.nan
