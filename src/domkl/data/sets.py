"""A data set of the paper, ready to be dealt: found, checked, chosen by a rule, scaled."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from domkl import checks
from domkl.data.catalog import DATASETS
from domkl.data.loaders import load_series
from domkl.data.ranges import check_known, ranges_of
from domkl.data.records import Bounds, DataSet, Edition, data_set
from domkl.data.rules import RULES, Chosen, choose, n_records
from domkl.data.store import read
from domkl.data.streams import SCALES, Scaled, embed, scale_note, scaled
from domkl.data.tables import read_table
from domkl.errors import ParameterError
from domkl.typing import Floats


class Prepared(NamedTuple):
    """Samples of a data set in the order of its file, and how they were made."""

    name: str
    X: Floats  # (N, d), scaled
    y: Floats  # (N,), scaled
    is_series: bool  # the inputs are lags, newest first
    names: tuple[str, ...]  # of the inputs
    facts: dict[str, Any]  # JSON-ready
    note: str  # one line for people


def load_set(
    name: str,
    *,
    rule: str = "paper",
    scale: str = "authors",
    target: str | None = None,
    n_lags: int = 5,
    ranges: Mapping[str, Bounds] | None = None,
    data_dir: str | Path | None = None,
) -> Prepared:
    """Load a data set of the paper by name.

    Parameters
    ----------
    name : one of ``DATASETS``
    rule : "paper" or "clean"
        The rows and quirks of the authors' arrays, or all complete records; docs/data.md has both
        set by set.
    scale : "authors", "minmax", "declared" or "none"
        What the authors did to the set; or see `scaled`.
    target : str, optional
        Another column to predict, where the set has one.
    n_lags : int
        Inputs of the time series traffic and temperature.
    ranges : mapping of column to (low, high), optional
        Before the declared ranges of the catalog; with scale "declared" only.
    data_dir : path, optional
        Folder with the file; otherwise ``DOMKL_DATA``, then the cache.

    Examples
    --------
    >>> made = load_set("traffic")
    >>> made.X.shape, made.names[:2], made.facts["target_divisor"]
    ((6495, 5), ('lag 1', 'lag 2'), 7217.0)
    """
    data = data_set(name, DATASETS)
    checks.choice("rule", rule, RULES)
    checks.choice("scale", scale, SCALES)
    target = checks.choice("target", data.target if target is None else target, data.targets)
    if ranges is not None and scale != "declared":
        raise ParameterError(f"ranges are for scale declared, got scale {scale}")
    if data.is_series:
        return _series(data, rule, scale, n_lags, ranges)
    found = read(data, data_dir)
    first = n_records(found.edition, rule)
    table = read_table(found.content, found.edition, found.place, first)
    chosen = choose(table, data, found.edition, target, rule)
    check_known(ranges or {}, (*chosen.names, target))
    declared = {**data.ranges, **found.edition.ranges, **(ranges or {})}
    inputs, label = _scaled_table(chosen, found.edition, scale, target, declared)
    facts = _facts(data, found.edition, found.sha256, rule, scale, target, label)
    facts |= {
        "file": found.file,
        "rows_in_file": table.n_rows,
        "rows_left_out": chosen.rows_left_out,
        "first_lines_left_out": chosen.first_lines,
        "columns_left_out": chosen.columns_left_out,
        "missing_values": chosen.n_missing,
        "rows": len(chosen.y),
        "values_outside": _outside((*chosen.names, target), inputs, label),
    }
    note = f"{_rows_note(facts)}; {_scale_note(facts, found.edition, label)}"
    return Prepared(name, inputs.values, label.values, False, chosen.names, facts, note)


def _series(
    data: DataSet, rule: str, scale: str, n_lags: int, ranges: Mapping[str, Bounds] | None
) -> Prepared:
    found, series = read(data), load_series(data.name, rule)
    check_known(ranges or {}, (data.target,))
    declared = {**data.ranges, **(ranges or {})}
    is_declared = scale == "declared"
    made = scaled(series.values, scale, ranges_of(data.target, declared) if is_declared else None)
    X, y = embed(made.values, n_lags)
    facts = _facts(data, found.edition, found.sha256, rule, scale, data.target, made)
    facts |= {
        "file": found.file,
        "lags": n_lags,
        "rows_in_file": found.edition.rows,
        "rows_left_out": series.rows_left_out,
        "rows": len(series.values),
        "values_outside": {data.target: int(made.n_outside)} if made.n_outside else {},
    }
    names = tuple(f"lag {i}" for i in range(1, n_lags + 1))
    note = f"{series.note}; {scale_note(scale, made, 'all values', int(made.n_outside))}"
    return Prepared(data.name, X, y, True, names, facts, note)


def _scaled_table(
    chosen: Chosen, edition: Edition, scale: str, target: str, declared: Mapping[str, Bounds]
) -> tuple[Scaled, Scaled]:
    """Inputs and target, scaled."""
    if scale == "declared":
        inputs = scaled(chosen.X, scale, ranges_of(chosen.names, declared))
        return inputs, scaled(chosen.y, scale, ranges_of(target, declared))
    if scale != "authors":
        return scaled(chosen.X, scale), scaled(chosen.y, scale)
    rule, is_joint, _ = edition.authors
    label = scaled(chosen.y, rule)
    if not is_joint:
        return scaled(chosen.X, rule), label
    joint = scaled(chosen.X.ravel(), rule)
    return joint._replace(values=joint.values.reshape(chosen.X.shape)), label


def _facts(
    data: DataSet, edition: Edition, sha256: str, rule: str, scale: str, target: str, label: Scaled
) -> dict[str, Any]:
    """What holds of tables and series alike."""
    return {
        "data": data.name,
        "sha256": sha256,
        "edition": edition.name,
        "rule": rule,
        "scale": scale,
        "target": target,
        "target_offset": float(label.offset),
        "target_divisor": float(label.divisor),
        "rows_of_paper": data.paper_rows,
    }


def _outside(names: tuple[str, ...], inputs: Scaled, label: Scaled) -> dict[str, int]:
    """Columns with values outside their declared range, and how many."""
    if inputs.n_outside.ndim == 0:
        return {}
    counts = [*inputs.n_outside.tolist(), int(label.n_outside)]
    return {name: n for name, n in zip(names, counts, strict=True) if n}


def _rows_note(facts: Mapping[str, Any]) -> str:
    out = [f"{n} {reason}" for reason, n in facts["rows_left_out"].items()]
    lost = [f"column {name} {why}" for name, why in facts["columns_left_out"].items()]
    left = ", ".join(out + lost) or "nothing"
    return f"{facts['rows']} of {facts['rows_in_file']} rows of {facts['file']}; left out: {left}"


def _scale_note(facts: Mapping[str, Any], edition: Edition, label: Scaled) -> str:
    what = "the target, inputs likewise"
    if facts["scale"] == "authors":
        if edition.authors.rule == "none":
            return f"scale authors: {edition.authors.words}"
        what = "the target, inputs all together" if edition.authors.is_joint else what
    return scale_note(facts["scale"], label, what, sum(facts["values_outside"].values()))
