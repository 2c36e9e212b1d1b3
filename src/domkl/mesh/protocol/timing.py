"""How long the protocol waits, and for what."""

from typing import NamedTuple

from domkl import checks


class Timing(NamedTuple):
    """Seconds."""

    round_timeout: float = 1.0  # lockstep: a round ends after this, whoever is missing
    resend_after: float = 0.1  # ask again for what has not come
    idle_after: float = 0.5  # without a sample for so long, follow the neighbors
    alive_every: float = 1.0  # say something at least so often
    silence: float = 4.0  # a neighbor not heard for so long is down
    start_timeout: float = 10.0  # lockstep: wait so long for all neighbors before the first round

    def check(self) -> "Timing":
        """Refuse what cannot work."""
        for name, value in self._asdict().items():
            checks.positive(name, value)
        return self
