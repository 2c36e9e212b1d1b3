"""Real stations: what does each of thirty car parks gain from a network?

Each car park in Birmingham is a learner with its own stream, and predicts how full it will be in
two hours. The same learners run once with their neighbors and once alone. `--data beijing-air` does
the same for twelve air-quality stations, on a map, if their files have been fetched.
"""

import numpy as np
import picture

import domkl

HORIZON = {"parking": 4, "beijing-air": 6}  # steps: two hours, six hours


def network_of(made):
    """Join each station with its nearest where places are known, else on a circle."""
    if made.places is None:
        return domkl.Graph.circle(len(made.stations))
    return domkl.Graph.nearest(made.places, 3)


def places_of(made):
    """Where to draw the stations."""
    if made.places is not None:
        return np.asarray(made.places)
    angle = np.linspace(0, 2 * np.pi, len(made.stations), endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def draw(made, graph, error, out):
    """The network, colored by what each station gains, and the errors of all of them."""
    figure, (network, bars) = picture.panels(2, width=10, height=4.4)
    gain = 100 * (1 - error["network"] / error["alone"])
    places, largest = places_of(made), np.nanmax(np.abs(gain))
    for a, b in graph.edges:
        network.plot(*places[[a, b]].T, color="0.8", linewidth=1, zorder=1)
    dots = network.scatter(
        *places.T,
        c=gain,
        s=70,
        cmap="RdBu",
        vmin=-largest,
        vmax=largest,
        edgecolors="0.3",
        zorder=2,
    )
    figure.colorbar(dots, ax=network, label="error that the network saves (%)", shrink=0.8)
    network.set(xticks=[], yticks=[], aspect="equal", title=f"{len(gain)} stations")
    network.spines[:].set_visible(False)
    order = np.argsort(error["last value"])
    styles = {"last value": picture.NAIVE, "alone": picture.ALONE, "network": picture.OURS}
    for name, color in styles.items():
        bars.plot(error[name][order], "o-", color=color, label=name, markersize=3, linewidth=1)
    bars.set(xlabel="stations, by the error of the last value", ylabel="RMSE")
    bars.set_ylim(bottom=0)
    bars.legend(frameon=False)
    picture.save(figure, out, "stations" if made.name == "parking" else f"stations-{made.name}")


def main():
    """Run the three, print the errors, draw the picture."""
    parser = picture.options(__doc__.splitlines()[0])
    parser.add_argument("--data", choices=list(HORIZON), default="parking")
    parser.add_argument("--rounds", type=int, default=2000)
    args = parser.parse_args()
    made = domkl.load_set(args.data, scale="declared", horizon=HORIZON[args.data])
    X, y = made.X[: args.rounds], made.y[: args.rounds]
    graph = network_of(made)
    measured = np.isfinite(np.asarray(y)).any(axis=0)  # some stations begin later
    features = domkl.RandomFeatures.draw(domkl.default_bank(), X.shape[2], seed=1)
    learner = domkl.DOMKRLS(newest_lag=made.newest_lag)
    algorithms = {
        "network": learner,
        "alone": domkl.Alone(learner),
        "last value": domkl.LastValue(newest_lag=made.newest_lag),
    }
    error = {}
    for name, algorithm in algorithms.items():
        run = domkl.simulate(algorithm, X, y, graph, features, cv="off")
        gaps = run.predictions - np.asarray(y)
        error[name] = np.full(len(measured), np.nan)
        error[name][measured] = picture.rms(gaps[:, measured], axis=0)
        print(f"{name:12}RMSE {picture.rms(gaps):.4f}")
    draw(made, graph, error, args.out)


if __name__ == "__main__":
    main()
