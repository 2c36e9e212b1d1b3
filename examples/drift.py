"""Drift: a function changes its sign in the middle of the stream, and one learner follows it.

No parameter is set. It is compared with a linear model of River and with the last label.
"""

import numpy as np
import picture
from river import linear_model, preprocessing

from domkl.estimators.river import OnlineKernelRegressor

N, CHANGE, WINDOW = 3000, 1500, 100


def stream(rng):
    """Samples whose function changes its sign after CHANGE of them."""
    for k in range(N):
        a, b = rng.uniform(size=2)
        sign = 1 if k < CHANGE else -1
        yield {"a": a, "b": b}, sign * np.sin(6 * a) * b + b + rng.normal(0, 0.05)


def main():
    """Predict, then learn, each sample; draw the moving error."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    ours = OnlineKernelRegressor()
    linear = preprocessing.StandardScaler() | linear_model.LinearRegression()
    errors, last = {"domkl": [], "River, linear": [], "last label": []}, 0.0
    for x, y in stream(np.random.default_rng(1)):
        errors["domkl"].append(ours.predict_one(x) - y)
        errors["River, linear"].append(linear.predict_one(x) - y)
        errors["last label"].append(last - y)
        ours.learn_one(x, y)
        linear.learn_one(x, y)
        last = y
    figure, axis = picture.panels()
    colors = (picture.OURS, picture.OTHER, picture.NAIVE)
    for (name, values), color in zip(errors.items(), colors, strict=True):
        axis.plot(
            np.arange(WINDOW, N + 1), picture.moving_rms(values, WINDOW), color=color, label=name
        )
        print(f"{name:14}RMSE {picture.rms(values):.3f}")
    axis.axvline(CHANGE, color="0.4", linestyle=":", label="the function changes")
    axis.set(xlabel="samples", ylabel=f"RMSE of the last {WINDOW}")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)
    picture.save(figure, args.out, "drift")


if __name__ == "__main__":
    main()
