"""What a node says after each sample: its prediction, in the target's units, as one object.

- A mesh with inputs: the prediction for the sample, made before its label was used.
- A series: the prediction of the next value.
- A mesh that forecasts: the forecasts of all horizons from the newest values, which are scored when
  their labels come.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from domkl.mesh.protocol.events import Forecasted, Predicted
from domkl.mesh.protocol.model import Model
from domkl.mesh.store.backlog import Backlog
from domkl.typing import Floats

SPREAD = ("deviation", "quantiles")
Content = Mapping[str, Any]
Listener = Callable[[int, Content], None]  # told the sample's number in the log, and the content
#: for scaled inputs, in units
Predict = Callable[[Floats], tuple[float, float | None, dict[str, float] | None]]


class Outgoing:
    """Makes predictions to publish from what the protocols say.

    Parameters
    ----------
    learner : str
    models : sequence of Model
        One, or one for each horizon.
    backlog : Backlog
    predict : callable
        For scaled inputs, the prediction, its deviation and quantiles in the target's units.

    Attributes
    ----------
    listeners : list
        Without any, a node asks for nothing to be made.
    """

    def __init__(
        self, learner: str, models: Sequence[Model], backlog: Backlog, predict: Predict
    ) -> None:
        self.listeners: list[Listener] = []
        self._learner, self._models = learner, {each.horizon: each for each in models}
        self._backlog, self._predict = backlog, predict
        self._forecasts: dict[int, dict[int, Forecasted]] = {}  # by number and horizon

    def predicted(self, effect: Predicted) -> None:
        """Take in a prediction of a sample."""
        backlog, rows = self._backlog, self._backlog.rows
        if rows.is_dated:
            return
        number = backlog.place(effect.number)
        (model,) = self._models.values()
        if rows.plan is None:
            y_hat, *told = model.in_units(effect.y_hat, effect.deviation, effect.quantiles)
            y = model.target_of(effect.y) if math.isfinite(effect.y) else None
            self._tell(number, y_hat, {**dict(zip(SPREAD, told, strict=True)), "y": y})
        else:
            y_hat, *told = self._predict(rows.lags_at(effect.number))
            self._tell(number, y_hat, dict(zip(SPREAD, told, strict=True)))

    def forecasted(self, effect: Forecasted) -> None:
        """Take in the forecast of one horizon; when all are there, they are told together.

        After a restart some horizons may be ahead of others: what they have forecast before is not
        told again.
        """
        found = self._forecasts.setdefault(effect.number, {})
        found[effect.horizon] = effect
        if len(found) == len(self._models):
            for number in sorted(n for n in self._forecasts if n <= effect.number):
                self._tell_forecasts(number, self._forecasts.pop(number))

    def _tell_forecasts(self, number: int, found: Mapping[int, Forecasted]) -> None:
        plan = self._backlog.rows.plan
        assert plan is not None
        made, tick = [], next(iter(found.values())).tick
        for h, effect in sorted(found.items()):
            if effect.y_hat is not None and math.isfinite(effect.y_hat):
                known = effect.y_hat, effect.deviation, effect.quantiles
                y_hat, *told = self._models[h].in_units(*known)
                made.append({"horizon": h, "time": plan.clock.text(tick + h), "prediction": y_hat}
                            | dict(zip(SPREAD, told, strict=True)))  # fmt: skip
        if made:
            facts = {"time": plan.clock.text(tick), "forecasts": made}
            self._tell(self._backlog.place(number), None, facts)

    def _tell(self, number: int, y_hat: float | None, facts: Content) -> None:
        if y_hat is not None and not math.isfinite(y_hat):
            return
        target = next(iter(self._models.values())).target.name
        content: dict[str, Any] = {"learner": self._learner, "number": number, "target": target}
        content |= {} if y_hat is None else {"prediction": y_hat}
        content.update(facts)
        for listener in self.listeners:
            listener(number, content)
