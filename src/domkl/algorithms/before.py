"""The state of DOMKRLS as versions 0.2 to 0.5 pickled it: by position.

`learner.restore` makes a state of now of it.
"""

from collections import namedtuple
from typing import Any

import numpy as np

#: The fields of 0.5. Those from `sides` on came with 0.4, the last two with 0.5; a pickle of before
#: has none of them, and a width in the place of the quantiles.
NAMES = (
    "sums counts loss regret variance rounds own diagonal factor own_counts own_regret own_variance"
    " score final own_rounds correction clue_diagonal clue_factor errors nearby last turns odds"
    " noise quantiles prior lag is_linear by_evidence by_regret by_own top"
    " sides trust bound low high gate past season"
)
Before: Any = namedtuple("Before", NAMES, defaults=[np.empty(0)] * 8)  # type: ignore[misc]
