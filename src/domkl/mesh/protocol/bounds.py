"""How far a neighbor may move a learner: no further than the learner's own samples do.

What a neighbor says enters a learner within a radius, from the first message on and in any epoch.
The radius is made of the learner's own past: of the largest steps by which its samples moved it,
without neighbors, in the last hundred or so. Each end of an edge states its radii with every offer,
and both take the smaller ones. So the two ends change by opposite amounts, up to rounding, duals
sum to zero and means stay, and a liar can only make a radius smaller. What is within the radius is
not changed at all. Offers without a label in between share one radius, so haste gains nothing.

A learner that has had no label has nothing to compare with. It states a radius of zero, by which it
moves nobody, and takes over the median of what its neighbors say.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domkl.speech.base import Fields
from domkl.typing import Array, Floats

if TYPE_CHECKING:
    from domkl.mesh.protocol.edges import Edge, Pair
    from domkl.mesh.protocol.families import Family

#: The largest step of own samples loses this share with each label.
STEP_FADE = 0.01
#: Codes of radii: 0 is 0, 255 is no limit, and others are 2^((code − MIDDLE)/STEPS).
STEPS, MIDDLE, UNLIMITED = 4, 128, 255


def code_of(radii: Floats) -> NDArray[np.uint8]:
    """Code radii in a byte each, rounded down.

    Examples
    --------
    >>> radius_of(code_of(np.array([0.0, 1.0, 1.1, np.inf]))).tolist()
    [0.0, 1.0, 1.0, inf]
    """
    with np.errstate(divide="ignore"):
        place = np.floor(MIDDLE + STEPS * np.log2(radii))
    coded = np.where(np.isinf(radii), UNLIMITED, np.where(radii > 0, np.clip(place, 1, 254), 0))
    return coded.astype(np.uint8)


def radius_of(codes: NDArray[np.uint8]) -> Floats:
    """Read what `code_of` wrote."""
    radii: Floats = 2.0 ** ((codes.astype(np.float64) - MIDDLE) / STEPS)
    radii[codes == 0], radii[codes == UNLIMITED] = 0.0, np.inf
    return radii


class Bounds:
    """The limits of one learner.

    Parameters
    ----------
    family : Family
        What the algorithm's state and messages mean.
    n_rows : int
        Rows of what is said that have a limit each: kernels, or fits.
    """

    def __init__(self, family: "Family", n_rows: int) -> None:
        self._family, self._n_rows = family, n_rows
        self.steps: dict[str, Floats] = {}  # the largest own steps of late, by field and row
        self.n = 0  # own labels
        self._n_offers = 0  # made since the last one
        self.became_suspicious = False  # the neighbor of the last exchange, by that one

    def see(self, before: Fields, after: Fields) -> None:
        """Take note of how far a label has moved the learner without neighbors."""
        self.n, self._n_offers = self.n + 1, 0
        for field, then in before.items():
            moved = after[field] - then
            sizes = np.sqrt(np.einsum("rd,rd->r", moved, moved))
            largest = self.steps.get(field, np.zeros(len(sizes)))
            self.steps[field] = np.maximum((1 - STEP_FADE) * largest, sizes)

    def codes(self, degree: int) -> bytes:
        """Give the radii to state in an offer, as bytes."""
        self._n_offers += 1
        steps = self.steps.get(self._family.moved, np.zeros(self._n_rows))
        return code_of(self._family.radii(steps, degree) / self._n_offers).tobytes()

    def limited(self, edge: "Edge", pair: "Pair") -> "Pair":
        """Give the pair with their words brought within the smaller of both radii.

        Nobody is suspicious because its labels, or ours, do not come any more.
        """
        radii = np.minimum(pair.own.radii, pair.theirs.radii)
        gaps, share = self._family.within(pair, radii, edge, self.steps)
        is_ours = self._n_offers <= 1 and bool((pair.theirs.radii >= pair.own.radii).any())
        self.became_suspicious = is_ours and edge.measures.add_share(share)
        if not gaps:
            return pair
        own, theirs = pair.own.fields, pair.theirs.fields
        near = {
            f: np.where(gap == theirs[f] - own[f], theirs[f], own[f] + gap).astype(theirs[f].dtype)
            for f, gap in gaps.items()
        }
        return pair._replace(theirs=pair.theirs._replace(fields=theirs | near))

    def saved(self) -> dict[str, Array]:
        """Return what a checkpoint keeps."""
        kept = {f"bounds.steps.{field}": values for field, values in self.steps.items()}
        return kept | {"bounds.n": np.array([self.n])}

    def restore(self, arrays: Mapping[str, Array], n_labels: int) -> None:
        """Go on with what `saved` returned, after so many labels.

        Files of before 0.6 have none of it: then nobody moves the learner before its next label.
        """
        first = "bounds.steps."
        kept = {name: values for name, values in arrays.items() if name.startswith(first)}
        self.steps = {name.removeprefix(first): np.array(v, float) for name, v in kept.items()}
        self.n = int(arrays["bounds.n"][0]) if "bounds.n" in arrays else n_labels


def shrunk(gap: Array, radius: Floats) -> Floats:
    """Give the share of each row (1, R, D) that is within its radius, (R,)."""
    sizes = np.sqrt(np.einsum("krd,krd->r", gap, gap))
    left: Floats = np.divide(radius, sizes, out=np.ones_like(sizes), where=sizes > radius)
    return left
