"""Sets by name: the authors' arrays, the clean rule, scales, and what is reported."""

import json

import numpy as np
import pytest

import domkl
from domkl.data.catalog import DATASETS

TABLES = [name for name, data in DATASETS.items() if not data.is_shipped]


@pytest.mark.parametrize(
    ("name", "rows", "variance"),
    [
        ("weather", 7590, 0.642),
        ("wave", 9200, 0.0173),
        ("air-quality", 7322, 1.528),
        ("twitter", 13813, 2.403),
        ("conductivity", 11000, 5.35),
    ],
)
def test_the_authors_arrays(data_dir, name, rows, variance):
    made = domkl.load_set(name, data_dir=data_dir)
    assert len(made.y) == rows == made.facts["rows"]
    assert made.X.shape == (rows, DATASETS[name].n_inputs) == (rows, len(made.names))
    assert 100 * made.y.var() == pytest.approx(variance, rel=1e-3)
    assert np.isfinite(made.X).all()
    assert json.loads(json.dumps(made.facts, allow_nan=False)) == made.facts
    assert made.facts["rows_in_file"] == rows + sum(made.facts["rows_left_out"].values())


@pytest.mark.parametrize(
    ("name", "offset", "divisor"),
    [("air-quality", 0.1, 11.8), ("twitter", 0, 2219.5), ("wave", 0, 1), ("weather", 17.4, 38.9)],
)
def test_the_targets_scale(data_dir, name, offset, divisor):
    facts = domkl.load_set(name, data_dir=data_dir).facts
    assert facts["target_offset"] == pytest.approx(offset)
    assert facts["target_divisor"] == pytest.approx(divisor)


def test_the_inputs_of_air_quality_share_one_scale(data_dir):
    raw = domkl.load_set("air-quality", scale="none", data_dir=data_dir)
    made = domkl.load_set("air-quality", data_dir=data_dir)
    np.testing.assert_allclose(made.X, (raw.X + 200) / 2975, rtol=1e-12)
    assert made.names[0] == "Time"
    assert set(np.round(raw.X[:, 0] * 24, 9)) == set(range(24))


def test_the_inputs_of_twitter_share_one_scale(data_dir):
    raw = domkl.load_set("twitter", scale="none", data_dir=data_dir)
    np.testing.assert_allclose(domkl.load_set("twitter", data_dir=data_dir).X, raw.X / 6074)


def test_weather_by_either_rule(data_dir):
    paper = domkl.load_set("weather", scale="none", data_dir=data_dir)
    clean = domkl.load_set("weather", scale="none", rule="clean", data_dir=data_dir)
    np.testing.assert_array_equal(paper.y[:-2], clean.y)
    assert paper.y[-2:].tolist() == [17.4, 38.9]  # the summary rows
    assert clean.facts["rows_left_out"]["no record but a summary"] == 2
    assert clean.facts["first_lines_left_out"]["no record but a summary"] == [7752, 7753]
    assert not {"Next_Tmax", "Next_Tmin", "station", "Date"} & set(clean.names)


def test_another_target(data_dir):
    made = domkl.load_set("weather", target="Next_Tmin", scale="none", data_dir=data_dir)
    assert made.y[0] == 21.2
    assert len(made.names) == 21
    with pytest.raises(domkl.ParameterError, match="target must be one of critical_temp"):
        domkl.load_set("conductivity", target="Next_Tmin", data_dir=data_dir)


def test_clean_air_knows_what_is_missing(data_dir):
    made = domkl.load_set("air-quality", rule="clean", scale="none", data_dir=data_dir)
    assert made.X.shape == (6941, 12)
    assert made.X.min() > -200
    assert made.facts["columns_left_out"] == {"NMHC(GT)": "missing in 90% of the records"}
    assert made.facts["missing_values"] == 16701
    assert "left out: 1683 no target, 733 missing inputs, column NMHC(GT)" in made.note


def test_declared_ranges_count_what_lies_outside(data_dir):
    made = domkl.load_set("weather", scale="declared", data_dir=data_dir)
    assert made.facts["values_outside"] == {"LDAPS_RHmax": 2}
    assert made.X.max() > 1  # never clipped
    assert "2 values outside their declared range" in made.note
    narrow = {"Next_Tmax": (20, 30)}
    made = domkl.load_set("weather", scale="declared", ranges=narrow, data_dir=data_dir)
    assert made.facts["values_outside"]["Next_Tmax"] > 1000
    assert made.facts["target_divisor"] == 10


def test_a_count_has_no_declared_range(data_dir):
    with pytest.raises(
        domkl.ParameterError, match=r"got none for NCD_0, NCD_1, NCD_2 and \d+ more"
    ):
        domkl.load_set("twitter", scale="declared", data_dir=data_dir)


@pytest.mark.parametrize(("name", "rows"), [("traffic", 6500), ("temperature", 5500)])
def test_series_are_embedded_after_scaling(name, rows):
    made = domkl.load_set(name, n_lags=3)
    assert made.is_series
    assert made.X.shape == (rows - 3, 3)
    assert made.facts["rows"] == rows == DATASETS[name].paper_rows
    values = domkl.scaled(domkl.load_series(name).values, "authors").values
    np.testing.assert_array_equal(made.X[0], values[2::-1])
    np.testing.assert_array_equal(made.y, values[3:])


def test_the_clean_temperature_has_no_zero_kelvin():
    made = domkl.load_set("temperature", rule="clean", scale="declared")
    assert made.facts["rows_left_out"] == {"repeated hours": 7629, "impossible values": 10}
    assert made.facts["values_outside"] == {}
    assert domkl.load_set("temperature", ranges={"temp": (250, 300)}, scale="declared").facts[
        "values_outside"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "moon"}, "data set must be one of weather, .*, got 'moon'"),
        ({"name": "traffic", "rule": "honest"}, "rule must be one of paper, clean"),
        ({"name": "traffic", "scale": "log"}, "scale must be one of"),
        ({"name": "traffic", "ranges": {}}, "ranges are for scale declared, got scale authors"),
        ({"name": "traffic", "n_lags": 0}, "lags must be an integer >= 1"),
        (
            {"name": "traffic", "scale": "declared", "ranges": {"traffic_volume": (5, 1)}},
            "ranges must be finite with low < high",
        ),
    ],
)
def test_choices_that_do_not_exist(arguments, message):
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.load_set(**arguments)


def test_the_shipped_series_follow_the_paper():
    traffic, temperature = domkl.load_series("traffic"), domkl.load_series("temperature")
    assert (len(traffic.values), traffic.values.min(), traffic.values.max()) == (6500, 125, 7217)
    assert len(temperature.values) == 5500
    assert temperature.values.min() == 244.82


def test_the_clean_series_has_one_possible_value_an_hour():
    traffic = domkl.load_series("traffic", rule="clean")
    temperature = domkl.load_series("temperature", rule="clean")
    assert len(traffic.values) == 48204 - 7629
    assert "7629 repeated hours" in traffic.note
    assert (temperature.values > 0).all()
    assert len(temperature.values) == len(traffic.values) - 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("rain",), "name must be one of"), (("traffic", "raw"), "rule must be one of")],
)
def test_unknown_names(arguments, message):
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.load_series(*arguments)
