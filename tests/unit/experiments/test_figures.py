"""Figures from their JSON form: lines that an axis cannot show are named."""

from domkl.experiments.figures import _styles, _unseen, draw


def figure(**means):
    lines = [
        {"name": name, "x": [1.0, 2.0], "mean": mean, "low": mean, "high": mean}
        for name, mean in means.items()
    ]
    panel = {
        "title": "", "x_label": "", "y_label": "", "lines": lines, "x_log": True, "y_log": True,
    }  # fmt: skip
    return {"id": "made", "caption": "", "panels": [panel], "n_columns": 1}


def test_lines_that_are_not_seen_are_named():
    made = figure(domkl=[1.0, 2.0], comkl=[0, 0], own=[None, None], late=[None, 1.0])
    assert _unseen(made["panels"][0]) == "0 throughout: comkl\nno finite value: own"
    assert draw(made, "png", title="a title")[:4] == b"\x89PNG"


def test_an_algorithm_has_its_color_everywhere():
    first, second = (
        _styles(figure(**{name: [1.0, 1.0] for name in names}))["domkl"]
        for names in (("domkl", "own"), ("own", "other", "domkl"))
    )
    assert first[:2] == second[:2] == ("#0072B2", "-")


def test_a_figure_with_nothing_to_see_is_drawn():
    assert draw(figure(own=[None, None]), "svg").startswith(b"<?xml")
    many = figure(own=[0.0, 0.0])
    (line,) = many["panels"][0]["lines"]
    line |= {name: [0.0] * 20 for name in ("mean", "low", "high")}
    line["x"] = [float(t) for t in range(1, 21)]
    assert draw(many, "svg").startswith(b"<?xml")


def test_a_band_that_reaches_below_zero_stays_positive_on_a_logarithmic_axis():
    from matplotlib import pyplot as plt

    from domkl.experiments.figures import _line

    figure, axis = plt.subplots()
    line = {
        "name": "a",
        "x": [1.0, 2.0],
        "mean": [1.0, 1.0],
        "low": [0.5, -2.0],
        "high": [1.5, 4.0],
    }
    assert _line(axis, line, True, "k", "-", "o")
    (band,) = axis.collections
    bottoms = band.get_paths()[0].vertices[:, 1]
    assert bottoms.min() == 0.25  # 1²/4: as far below the mean, as a factor, as above it
    plt.close(figure)
