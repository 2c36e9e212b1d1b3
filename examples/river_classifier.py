"""A classifier in River: recognise phishing web sites, one by one.

The data set Phishing ships with River. The learner is compared with River's logistic regression
and adaptive tree, all with their defaults and in the order of the file.
"""

import numpy as np
import picture
from river import datasets, linear_model, preprocessing, tree

from domkl.estimators.river import OnlineKernelClassifier


def main():
    """Predict, then learn, each site; draw the share of errors so far."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    models = {
        "domkl": OnlineKernelClassifier(),
        "logistic regression": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "adaptive tree": tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    }
    wrong = {name: [] for name in models}
    for x, label in datasets.Phishing():
        for name, model in models.items():
            wrong[name].append(model.predict_one(x) != label)
            model.learn_one(x, label)
    figure, axis = picture.panels()
    colors = (picture.OURS, picture.OTHER, picture.ALONE)
    for (name, errors), color in zip(wrong.items(), colors, strict=True):
        share = np.cumsum(errors) / np.arange(1, len(errors) + 1)
        axis.plot(100 * share, color=color, label=name)
        print(f"{name:20}{100 * share[-1]:.1f} % wrong")
    axis.set(xlabel="sites", ylabel="wrong so far (%)", ylim=(0, 30), xlim=(0, len(errors)))
    axis.legend(frameon=False)
    picture.save(figure, args.out, "river_classifier")


if __name__ == "__main__":
    main()
