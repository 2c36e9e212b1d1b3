"""The data sets of the paper, as records: origin, licence, target, rows, ranges, files.

Checksums are those of the uncompressed content. UCI's own archives were out of reach when this was
written: their addresses and member names follow public code that uses them (docs/data.md), and an
edition without a checksum is held to its content rules alone.
"""

import math

from domkl.data.loaders import PAPER_LENGTH
from domkl.data.records import AuthorsScale, Bounds, DataSet, Edition, Origin

_ARCHIVE = "https://archive.ics.uci.edu/static/public"

# weather

_WEATHER_RANGES: dict[str, Bounds] = {
    "Present_Tmax": (10, 45), "Present_Tmin": (0, 35),
    "LDAPS_RHmin": (0, 100), "LDAPS_RHmax": (0, 100),
    "LDAPS_Tmax_lapse": (10, 45), "LDAPS_Tmin_lapse": (0, 35),
    "LDAPS_WS": (0, 40), "LDAPS_LH": (-50, 500),
    **{f"LDAPS_CC{i}": (0, 1) for i in range(1, 5)},
    **{f"LDAPS_PPT{i}": (0, 100) for i in range(1, 5)},
    "lat": (37.4, 37.7), "lon": (126.7, 127.2), "DEM": (0, 300), "Slope": (0, 10),
    "Solar radiation": (4000, 6500), "Next_Tmax": (10, 45), "Next_Tmin": (0, 35),
}  # fmt: skip

_WEATHER = DataSet(
    name="weather",
    title="Bias correction of temperature forecasts, Seoul, summers of 2013 to 2017",
    origin=Origin(
        "Bias correction of numerical prediction model temperature forecast", 514,
        "10.24432/C59K76",
        f"{_ARCHIVE}/514/bias+correction+of+numerical+prediction+model+temperature+forecast.zip",
        "Cho, D. et al., Comparative assessment of various machine learning-based bias correction"
        " methods for numerical weather prediction model forecasts of extreme air temperatures in"
        " urban areas, Earth and Space Science 7 (2020)",
    ),
    task="regression",
    target="Next_Tmax",
    other_targets=("Next_Tmin",),
    not_inputs=("station", "Date"),
    record_key="station",
    n_inputs=21,
    paper_rows=7750,
    usable="7590 as the authors' array has them (7588 complete records and two summary rows,"
    " minimum and maximum, at the end of the file); 7588 by rule clean; 7750 records in all,"
    " 162 with gaps",
    editions=(
        Edition(
            name="uci", file="Bias_correction_ucl.csv", is_in_archive=True, rows=7752,
            state="UCI's file, from a public copy", columns=("station", "Date", *_WEATHER_RANGES),
            target_bounds=(0, 60), text=("Date",), has_gaps=True,
            sha256="f1e630ba9a637e9dae3e2c75c9ec46c50c7f3a54377fc177dce6557f08676552",
        ),
    ),
    ranges=_WEATHER_RANGES,
    ranges_from="Seoul in summer, and what humidity, cloud cover and the map allow",
)  # fmt: skip

# conductivity: statistics of eight properties of the elements in a compound

_STATISTICS = ("mean", "wtd_mean", "gmean", "wtd_gmean", "entropy", "wtd_entropy", "range",
               "wtd_range", "std", "wtd_std")  # fmt: skip
_PROPERTY_BOUNDS: dict[str, Bounds] = {  # over the elements that occur
    "atomic_mass": (0, 210), "fie": (0, 1700), "atomic_radius": (0, 300), "Density": (0, 22700),
    "ElectronAffinity": (0, 350), "FusionHeat": (0, 110), "ThermalConductivity": (0, 430),
    "Valence": (0, 7),
}  # fmt: skip
_CONDUCTIVITY_RANGES: dict[str, Bounds] = {
    "number_of_elements": (1, 9),
    **{
        f"{statistic}_{prop}": (0.0, math.log(9)) if "entropy" in statistic else bounds
        for prop, bounds in _PROPERTY_BOUNDS.items()
        for statistic in _STATISTICS
    },
    "critical_temp": (0, 200),
}

_CONDUCTIVITY = DataSet(
    name="conductivity",
    title="Critical temperature of superconductors from their composition",
    origin=Origin(
        "Superconductivty Data", 464, "10.24432/C53P47",
        f"{_ARCHIVE}/464/superconductivty+data.zip",
        "Hamidieh, K., A data-driven statistical model for predicting the critical temperature of a"
        " superconductor, Computational Materials Science 154 (2018)",
    ),
    task="regression",
    target="critical_temp",
    n_inputs=81,
    paper_rows=11000,
    usable="the first 11000, as many as the paper has (which ones it took is not stated); 21263 by"
    " rule clean",
    editions=(
        Edition(
            name="uci", file="train.csv", is_in_archive=True, rows=21263,
            state="UCI's file; the checksum is one that others published",
            columns=tuple(_CONDUCTIVITY_RANGES), target_bounds=(0, 200), paper_records=11000,
            sha256="4dfb6e3a1f6ffd969e5a5e42f093c4800d1e2a6c8b1e309f8fcd9f23d86952f3",
        ),
        Edition(
            name="rebuilt", file="superconduct_train.csv", rows=21263,
            state="inputs recomputed from the compositions, within 5e-6 of known rows of UCI's"
            " file; its own target",
            columns=tuple(_CONDUCTIVITY_RANGES), target_bounds=(0, 200), paper_records=11000,
            sha256="ada85903910562ed5b8055b2f8cfca5c4747ad19b8f5f4ddeaa69132a5ea23d7",
        ),
    ),
    ranges=_CONDUCTIVITY_RANGES,
    ranges_from="properties of the elements, at most nine in a compound, and below 200 K",
)  # fmt: skip

# wave

_CONVERTERS = range(1, 17)
_WAVE_COLUMNS = (*(f"{c}{i}" for c in "xyp" for i in _CONVERTERS), "power_all")

_WAVE = DataSet(
    name="wave",
    title="Power of sixteen wave energy converters by their positions (simulated)",
    origin=Origin(
        "Wave Energy Converters", 494, "10.24432/C5831S",
        f"{_ARCHIVE}/494/wave+energy+converters.zip",
        "Neshat, M. et al., A detailed comparison of meta-heuristic methods for optimising wave"
        " energy converter placements, GECCO (2018)",
    ),
    task="regression",
    target="power_all",
    n_inputs=48,
    paper_rows=9500,
    usable="9200, the authors' array; of UCI's 72000 or so for each of four sites, the first 9500"
    " of Adelaide: the paper does not name its site",
    editions=(
        Edition(
            name="authors", file="wave_energy_9200_normalised.csv", rows=9200,
            state="the authors' array: scaled, 9200 rows of one site that is not stated; column"
            " names are ours",
            columns=_WAVE_COLUMNS, target_bounds=(0, 1),
            authors=AuthorsScale("none", words="done already in the file"),
            ranges=dict.fromkeys(_WAVE_COLUMNS, (0.0, 1.0)),
            sha256="9cc3bf1291fb062eca1b020a6ffa94c03dc9fec82d92861306a59d1e9253c71b",
        ),
        *(
            Edition(
                name=f"uci-{site.lower()}", file=f"{site}_Data.csv", is_in_archive=True,
                rows=72000, state=f"UCI's file of {site}", columns=_WAVE_COLUMNS,
                target_bounds=(0, 1e7), has_header=False, paper_records=9500,
            )
            for site in ("Adelaide", "Perth", "Sydney", "Tasmania")
        ),
    ),
    ranges={f"{c}{i}": (0, 566) for c in "xy" for i in _CONVERTERS},
    ranges_from="a farm of 566 m by 566 m; nothing bounds the powers",
)  # fmt: skip

# twitter

_BUZZ = ("NCD", "AI", "AS(NA)", "BL", "NAC", "AS(NAC)", "CS", "AT", "NA", "ADL", "NAD")
_BUZZ_COLUMNS = (*(f"{name}_{day}" for name in _BUZZ for day in range(7)), "Annotation")
_BUZZ_SCALE = AuthorsScale("authors", True, "all inputs by their joint maximum, target by its own")

_TWITTER = DataSet(
    name="twitter",
    title="Activity on a topic on Twitter, from the week before",
    origin=Origin(
        "Buzz in social media", 248, "10.24432/C56G6V", f"{_ARCHIVE}/248/buzz+in+social+media.zip",
        "Kawala, F. et al., Prédictions d'activité dans les réseaux sociaux en ligne, MARAMI"
        " (2013)",
    ),
    task="regression",
    target="Annotation",
    n_inputs=77,
    paper_rows=98704,
    usable="13813, the authors' subset in a sister paper; of UCI's 583250, the first 98704: which"
    " ones the paper took is not stated",
    editions=(
        Edition(
            name="authors", file="twitter_buzz_13813.csv", rows=13813, columns=_BUZZ_COLUMNS,
            state="the authors' subset, brought back to raw units", target_bounds=(0, 1e6),
            authors=_BUZZ_SCALE,
            sha256="d79d5fbce8735d27ebfde7656389f8b283d87cb73e5e4dc8b80c4aaadf9ea401",
        ),
        Edition(
            name="uci", file="Twitter.data", is_in_archive=True, rows=583250, has_header=False,
            columns=_BUZZ_COLUMNS, state="UCI's file (Twitter, regression)",
            target_bounds=(0, 1e6), paper_records=98704, authors=_BUZZ_SCALE,
        ),
    ),
    ranges={
        f"{name}_{day}": (0, 1)
        for name in ("AS(NA)", "BL", "AS(NAC)", "CS") for day in range(7)
    },
    ranges_from="shares lie in [0, 1]; nothing bounds the counts",
)  # fmt: skip

# air quality

_AIR_RANGES: dict[str, Bounds] = {
    "Time": (0, 1), "CO(GT)": (0, 20), "PT08.S1(CO)": (0, 4000), "NMHC(GT)": (0, 2000),
    "C6H6(GT)": (0, 100), "PT08.S2(NMHC)": (0, 4000), "NOx(GT)": (0, 2000),
    "PT08.S3(NOx)": (0, 4000), "NO2(GT)": (0, 500), "PT08.S4(NO2)": (0, 4000),
    "PT08.S5(O3)": (0, 4000), "T": (-20, 50), "RH": (0, 100), "AH": (0, 4),
}  # fmt: skip
_AIR_SCALE = AuthorsScale("minmax", True, "(v - min)/(max - min), of all inputs together")
_AIR_COLUMNS = ("Date", *_AIR_RANGES)

_AIR = DataSet(
    name="air-quality",
    title="Carbon monoxide in an Italian city, from sensors and analysers",
    origin=Origin(
        "Air Quality", 360, "10.24432/C59K5F", f"{_ARCHIVE}/360/air+quality.zip",
        "De Vito, S. et al., On field calibration of an electronic nose for benzene estimation in"
        " an urban pollution monitoring scenario, Sensors and Actuators B 129 (2008)",
    ),
    task="time series",
    target="CO(GT)",
    not_inputs=("Date",),
    n_inputs=13,
    paper_rows=7322,
    usable="7322, the first 9000 records where CO(GT) is known; 6941 by rule clean, complete but"
    " for NMHC(GT), which is missing in nine of ten records",
    editions=(
        Edition(
            name="full-precision", file="air_quality_full_precision.csv", rows=9357,
            state="the .xlsx of UCI's archive as CSV, with more decimals: what the authors used",
            columns=_AIR_COLUMNS, target_bounds=(0, 20), text=("Date",), clock="Time",
            missing=-200, paper_records=9000, authors=_AIR_SCALE,
            sha256="c1f7a05480c0b6bc40b19ed4b35dda966bb05742de1c621a7d0feab6d20dcbcd",
        ),
        Edition(
            name="uci", file="AirQualityUCI.csv", is_in_archive=True, rows=9357,
            state="UCI's file, from a public copy of its archive: rounded",
            columns=_AIR_COLUMNS, target_bounds=(0, 20), text=("Date",), clock="Time",
            missing=-200, paper_records=9000, authors=_AIR_SCALE, separator=";", decimal=",",
            sha256="13277ae5d8581e80b7be09d47c7d3d06fe9b8e957078f2cf6e859f955e62f996",
        ),
    ),
    ranges=_AIR_RANGES,
    ranges_from="round numbers above what such analysers and sensors report",
)  # fmt: skip

# traffic and temperature: one file, shipped

_METRO = Origin(
    "Metro Interstate Traffic Volume", 492, "10.24432/C5X60B",
    f"{_ARCHIVE}/492/metro+interstate+traffic+volume.zip",
    "Hogue, J., Metro Interstate Traffic Volume, UCI Machine Learning Repository (2019)",
)  # fmt: skip


def _metro(name: str, title: str, column: str, usable: str, bounds: Bounds, why: str) -> DataSet:
    edition = Edition(
        name="shipped", file="metro.csv", is_shipped=True, rows=48204,
        state="three columns of UCI's file, shipped with domkl",
        columns=("date_time", "temp", "traffic_volume"), target_bounds=(0, 1e4),
        text=("date_time",), paper_records=PAPER_LENGTH[name],
        sha256="a1e0c2bc0748f7f23f65579942233d8d5f08c68b0d79290a4f59898ee77425f8",
    )  # fmt: skip
    return DataSet(
        name=name, title=title, origin=_METRO, task="time series", target=column,
        n_inputs=5, paper_rows=PAPER_LENGTH[name], usable=usable, editions=(edition,),
        ranges={column: bounds}, ranges_from=why,
    )  # fmt: skip


_TRAFFIC = _metro(
    "traffic",
    "Vehicles an hour on interstate 94 near Minneapolis",
    "traffic_volume",
    "the first 6500, as Table II has it (an array of the authors has 5500); 40575 by rule clean,"
    " one an hour",
    (0, 8000),
    "what the road can carry",
)
_TEMPERATURE = _metro(
    "temperature",
    "Kelvin, hourly, at interstate 94 near Minneapolis",
    "temp",
    "the first 5500, as Table II has it (an array of the authors has 6500); by rule clean one an"
    " hour, zero kelvin left out",
    (230, 320),
    "the coldest and the hottest day on record there",
)

DATASETS: dict[str, DataSet] = {
    each.name: each
    for each in (_WEATHER, _CONDUCTIVITY, _WAVE, _TWITTER, _AIR, _TRAFFIC, _TEMPERATURE)
}
