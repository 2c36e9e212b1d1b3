"""Plain speech: every number as it is."""

from typing import Any, ClassVar

from domkl.speech.base import Speech


class Plain(Speech):
    """Says the message itself, in the type of the learner's numbers."""

    is_exact: ClassVar[bool] = True

    def remember(self, message: Any) -> None:
        """Remember nothing."""


PLAIN = Plain()
