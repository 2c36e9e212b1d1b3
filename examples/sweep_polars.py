"""A sweep read by polars: does DOMKL's penalty depend on how dense the network is?

Every combination of penalty and density runs in ten trials, on all cores. The table is written
as a Parquet file and read by polars, which computes means. Needs the extra parquet, and polars.
"""

import tempfile
from pathlib import Path

import picture
import polars as pl

import domkl

SWEEP = {
    "sweep": {"trials": 10, "seed": 1},
    "data": {"name": "traffic", "rounds": 200},
    "graphs": {"kind": "random", "learners": 10, "connect": [0.2, 0.4, 0.8]},
    "algorithms": [{"name": "domkl", "rho": [0.02, 0.1, 0.5, 2.0, 10.0]}],
}


def main():
    """Run the sweep, read its table, draw the means."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rho.parquet"
        domkl.sweep(SWEEP, out=Path(folder) / "units").write(path)
        table = pl.read_parquet(path)
    means = (
        table.group_by("connect", "rho")
        .agg(pl.col("mse", "cv").mean(), error=pl.col("mse").std() / pl.len().sqrt())
        .sort("connect", "rho")
    )
    print(means)
    figure, (mse, cv) = picture.panels(2, width=9)
    colors = (picture.NAIVE, picture.ALONE, picture.OURS)
    for ((connect,), rows), color in zip(
        means.group_by("connect", maintain_order=True), colors, strict=True
    ):
        mse.errorbar(
            rows["rho"],
            rows["mse"],
            1.96 * rows["error"],
            fmt="o-",
            color=color,
            label=f"{connect}",
        )
        cv.plot(rows["rho"], rows["cv"], "o-", color=color)
    mse.set(xscale="log", xlabel="penalty ρ", ylabel="MSE after 200 rounds")
    cv.set(xscale="log", yscale="log", xlabel="penalty ρ", ylabel="disagreement (CV)")
    mse.legend(title="probability of an edge", frameon=False)
    picture.save(figure, args.out, "sweep_polars")


if __name__ == "__main__":
    main()
