"""Seventeen homes: load and PV, an hour and a day ahead."""

import numpy as np

from domkl.data.forecast import Prepared
from domkl.experiments.reproduce.document import OURS, Claim, Section, unchecked, verdict
from domkl.experiments.reproduce.session import Runs, Session
from studies.nodes import forecasts
from studies.stations import error_table, errors_of, gains, named_tasks

HOMES = "citylearn-homes"
TARGETS = {"load": "non_shiftable_load", "PV": "solar_generation"}
HORIZONS = "1,24"
QUICK_ROWS = "1200"
_CLAIMS = {
    "simple": "DOMKRLS errs less than the last value and the seasonal naive forecast for load and"
    " PV, 1 and 24 hours ahead.",
    "network": "Most homes err less in the network than alone, for load and PV, 1 and 24 hours"
    " ahead.",
}


def columns(session: Session) -> dict[str, Prepared]:
    """The streams by what they predict and how far ahead."""
    rows = QUICK_ROWS if session.is_quick else None
    return {
        f"{word} {h} h": data
        for word, target in TARGETS.items()
        for h, data in forecasts(session, HOMES, target=target, horizon=HORIZONS, rows=rows).items()
    }


def runs(session: Session) -> Runs:
    """All methods of our own for both targets and horizons, by column and name."""
    data = columns(session) if session.available([HOMES]) else {}
    return {(c, k): t for c, each in data.items() for k, t in named_tasks(session, each).items()}


def section(session: Session) -> Section:
    """The table of homes."""
    made = Section("homes", "Seventeen homes: load and PV")
    if not session.available([HOMES]):
        made.claims = [
            unchecked("homes-" + key, text, OURS, [HOMES]) for key, text in _CLAIMS.items()
        ]
        return made
    streams = columns(session)
    first = next(iter(streams.values()))
    made.text = [
        f"{len(first.stations)} homes ({HOMES}), {first.facts['ticks']} hours; load in kWh and PV"
        " in W per kW, from their own lags (three hours, a day, a week), the hour and the weekday,"
        " without any weather. Nobody knows where the homes stand: their network is a circle, each"
        " with the two before it and the two after it. They share the sun, so PV is much the same"
        " at all of them; what a household does, it does by itself.",
    ]
    made.claims = [_simple(session, streams), _network(session, streams)]
    by_column = {name: named_tasks(session, data) for name, data in streams.items()}
    note = "Load in kWh, PV in W per kW of panels; nights count."
    made.tables = [error_table(session, "Errors at the homes", by_column, [note])]
    return made


def _simple(session: Session, streams: dict[str, Prepared]) -> Claim:
    parts, is_true = [], True
    for name, data in streams.items():
        found = named_tasks(session, data)
        ours, last, season = (
            errors_of(session, found[key])[0] for key in ("domkrls", "last-value", "seasonal-naive")
        )
        is_true = is_true and ours < min(last, season)
        parts.append(f"{name}: {ours:.3g} against {last:.3g} and {season:.3g}")
    evidence = f"RMSE, and those of last value and seasonal naive. {'; '.join(parts)}."
    return Claim("homes-simple", _CLAIMS["simple"], OURS, evidence, verdict(is_true))


def _network(session: Session, streams: dict[str, Prepared]) -> Claim:
    parts, is_true = [], True
    for name, data in streams.items():
        found = gains(session, data)
        n = int(np.sum(found > 0))
        is_true = is_true and 2 * n > len(found)
        parts.append(f"{name}: {n} of {len(found)}, median {np.median(found):+.1f} %")
    evidence = f"Homes that gain, and the gain in RMSE. {'; '.join(parts)}."
    return Claim("homes-network", _CLAIMS["network"], OURS, evidence, verdict(is_true))
