"""What a mesh forecasts: the table [forecast] of a mesh file, and the rows that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass

from domkl import checks
from domkl.data.clock import CALENDAR, DAY, Clock, parse_duration
from domkl.data.rows import RowPlan
from domkl.errors import ParameterError
from domkl.mesh.config.keys import MOST, ForecastKeys
from domkl.mesh.protocol.model import Range


@dataclass(frozen=True)
class Forecasting(ForecastKeys):
    """How learners turn a stream of values into inputs, and how far ahead they forecast."""

    def __post_init__(self) -> None:
        if not self.horizons:
            raise ParameterError("horizons must be at least one, got none")
        for key in ("horizons", "lags"):
            for value in getattr(self, key):
                checks.whole(key, value, 1, MOST)
        for name in self.calendar:
            checks.choice("calendar", name, CALENDAR)
        if self.n_season < 1:
            raise ParameterError(
                f"season must be at least one step of {self.step}, got {self.season}"
            )

    @property
    def clock(self) -> Clock:
        """Ticks since 1970."""
        return Clock(0, parse_duration(self.step))

    @property
    def n_season(self) -> int:
        """Steps of a season."""
        return parse_duration(self.season) // self.clock.step

    def plan(self, target: Range, inputs: Sequence[Range]) -> RowPlan:
        """Which rows to make."""
        names = [each.name for each in inputs]
        for name in self.ahead:
            if name not in (*names, *CALENDAR):
                raise ParameterError(
                    f"ahead must name inputs, {', '.join(names) or 'none'}, got {name!r}"
                )
        now = tuple(name for name in names if name not in self.ahead)
        return RowPlan(
            target.name,
            lags=self.lags,
            inputs=(*now, *(name for name in self.calendar if name not in self.ahead)),
            ahead=self.ahead,
            horizons=self.horizons,
            hold=parse_duration(self.hold) // self.clock.step,
            scales={each.name: (each.low, each.high - each.low) for each in (target, *inputs)},
            clock=self.clock,
        )

    @property
    def season_words(self) -> str:
        """The season for people: a day, or as it was given."""
        return "a day" if parse_duration(self.season) == DAY else self.season


def row_ranges(plan: RowPlan) -> tuple[Range, ...]:
    """A range for each input of a row, which is scaled when it is made."""
    return tuple(Range(name, 0.0, 1.0) for name in plan.names)
