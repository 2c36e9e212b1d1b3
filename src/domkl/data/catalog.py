"""The data sets that domkl knows: origin, licence, target, rows, ranges, and the files accepted.

To add a data set, add a `DataSet` to this file. Everything else takes the names from here: the
functions that load, fetch and verify, the options of the command line, and sweep files. This module
imports neither NumPy nor anything heavier, so that `domkl --help` stays fast.

Checksums are those of the uncompressed content. The archives of the UCI repository could not be
reached when this was written: their addresses and file names are taken from public code that uses
them (docs/reference/data.md). A file for which the catalog has no checksum is accepted if its
content passes the checks of `tables.check_content`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from domkl.errors import DataError, ParameterError

#: lowest and highest value that a column can have, by what it measures
Bounds = tuple[float, float]


class Origin(NamedTuple):
    """Where a data set comes from."""

    uci_name: str
    uci_id: int
    doi: str
    archive: str  # address of UCI's archive
    citation: str
    licence: str = "CC BY 4.0"
    home: str = ""  # address of the page that describes the set, where that is not UCI's

    @property
    def page(self) -> str:
        """Address of the page that describes the set."""
        return self.home or f"https://archive.ics.uci.edu/dataset/{self.uci_id}"


class AuthorsScale(NamedTuple):
    """How the paper's authors scaled their array."""

    rule: str  # one of `options.SCALES`
    is_joint: bool = False  # whether all inputs share one offset and one divisor
    words: str = "(v - min)/max of each column"


class Station(NamedTuple):
    """Where a learner of a data set stands."""

    name: str
    latitude: float = math.nan  # degrees; NaN where it is not known
    longitude: float = math.nan


class NodeSet(NamedTuple):
    """How a set whose nodes have streams of their own becomes samples; all of it can be changed."""

    what: str  # what a node is, in the plural
    n_nodes: int
    graph: str  # kind of the network: nearest, where nodes have places, or circle
    lags: tuple[int, ...]
    inputs: tuple[str, ...]  # columns and calendar words
    time: tuple[str, ...] = ()  # columns of the time
    column: str | None = None  # that names the node; None: a file for each node
    start: str | None = None  # time of the first row, where the files have no time
    step: str | None = None
    share: tuple[str, str] | None = None  # the target is the first column over the second
    hold: str | None = None  # for how long the last value stands in for a missing one
    horizons: tuple[int, ...] = (1,)
    unit: str = ""  # of the target


@dataclass(frozen=True, kw_only=True)
class Edition:
    """One form of a data set's file: its name, its format, and what its content must satisfy."""

    name: str
    file: str  # name of the uncompressed file
    state: str  # what it is, and how it differs from UCI's file
    rows: int  # lines with numbers; an approximate number where there is no checksum
    columns: tuple[str, ...]
    target_bounds: Bounds  # every known value of the target lies between these
    sha256: str | None = None  # of the uncompressed content; None if we have never seen the file
    is_in_archive: bool = False  # whether UCI's archive contains it, under this name
    has_gaps: bool = False  # cells may be empty
    is_shipped: bool = False  # whether the file comes with domkl
    has_header: bool = True
    separator: str = ","
    decimal: str = "."
    text: tuple[str, ...] = ()  # columns that hold text; they are never inputs
    clock: str | None = None  # column with the time of day, read as a fraction of a day
    timestamp: str | None = None  # of a series: rule "clean" keeps one value for each time stamp
    missing: float | None = None  # a number that stands for a missing value
    paper_records: int | None = None  # rule "paper" takes this many records from the start
    authors: AuthorsScale = AuthorsScale("authors")
    ranges: Mapping[str, Bounds] = field(default_factory=dict)  # override those of the data set


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: origin, task, rows, target, ranges, and the files that are accepted for it."""

    name: str
    title: str
    origin: Origin
    task: str  # "regression" or "time series"
    target: str
    editions: tuple[Edition, ...]  # in order of preference; of stations, the file of each
    paper_rows: int | None  # as Table II of the paper says; None: the paper does not use it
    usable: str  # the rows that can be used, and why
    n_inputs: int
    is_series: bool = False  # whether the inputs are earlier values (lags) of the target
    other_targets: tuple[str, ...] = ()  # measured together with the target, so never inputs
    not_inputs: tuple[str, ...] = ()  # identifiers
    record_key: str | None = None  # a column that is empty in rows that are not records
    ranges: Mapping[str, Bounds] = field(default_factory=dict)
    ranges_from: str = ""
    stations: tuple[Station, ...] = ()  # each has a file of its own: they are the learners
    nodes: NodeSet | None = None  # of a set whose nodes have streams of their own

    @property
    def has_horizon(self) -> bool:
        """Whether the label can be several steps ahead of the inputs."""
        return self.is_series or self.nodes is not None

    @property
    def n_nodes(self) -> int | None:
        """How many nodes have streams of their own; None for samples that are to be dealt."""
        if self.nodes is None:
            return None
        return len(self.stations) or self.nodes.n_nodes

    @property
    def is_shipped(self) -> bool:
        """Whether the file comes with domkl."""
        return self.editions[0].is_shipped

    @property
    def targets(self) -> tuple[str, ...]:
        """Columns that may be chosen as the target."""
        return (self.target, *self.other_targets)

    def edition(self, name: str) -> Edition:
        """Return the edition of this name."""
        for edition in self.editions:
            if edition.name == name:
                return edition
        raise DataError(f"{self.name} has no edition {name!r}; fetch the set again")


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


def _metro(
    name: str,
    title: str,
    column: str,
    *,
    rows: int,
    usable: str,
    bounds: Bounds,
    why: str,
    missing: float | None = None,
) -> DataSet:
    """One column of the file of Metro Interstate Traffic Volume, as a series."""
    edition = Edition(
        name="shipped", file="metro.csv", is_shipped=True, rows=48204,
        state="three columns of UCI's file, shipped with domkl",
        columns=("date_time", "temp", "traffic_volume"), target_bounds=(0, 1e4),
        text=("date_time",), timestamp="date_time", missing=missing, paper_records=rows,
        sha256="a1e0c2bc0748f7f23f65579942233d8d5f08c68b0d79290a4f59898ee77425f8",
    )  # fmt: skip
    return DataSet(
        name=name, title=title, origin=_METRO, task="time series", target=column, is_series=True,
        n_inputs=5, paper_rows=rows, usable=usable, editions=(edition,),
        ranges={column: bounds}, ranges_from=why,
    )  # fmt: skip


_TRAFFIC = _metro(
    "traffic",
    "Vehicles an hour on interstate 94 near Minneapolis",
    "traffic_volume",
    rows=6500,
    usable="the first 6500, as Table II has it (an array of the authors has 5500); 40575 by rule"
    " clean, one an hour",
    bounds=(0, 8000),
    why="what the road can carry",
)
_TEMPERATURE = _metro(
    "temperature",
    "Kelvin, hourly, at interstate 94 near Minneapolis",
    "temp",
    rows=5500,
    usable="the first 5500, as Table II has it (an array of the authors has 6500); by rule clean"
    " one an hour, zero kelvin left out",
    bounds=(230, 320),
    why="the coldest and the hottest day on record there",
    missing=0.0,
)

# beijing-air: twelve files, one a station

#: degrees north and east, to three decimals, as public lists of the stations of the Beijing
#: Municipal Environmental Monitoring Center give them; UCI's files have none. Lists differ by less
#: than a kilometre, for Huairou by ten. And the checksum of each file, from a public copy.
_STATIONS = (
    Station("Aotizhongxin", 39.982, 116.397),
    Station("Changping", 40.217, 116.230),
    Station("Dingling", 40.292, 116.220),
    Station("Dongsi", 39.929, 116.417),
    Station("Guanyuan", 39.929, 116.339),
    Station("Gucheng", 39.914, 116.184),
    Station("Huairou", 40.328, 116.628),
    Station("Nongzhanguan", 39.937, 116.461),
    Station("Shunyi", 40.127, 116.655),
    Station("Tiantan", 39.886, 116.407),
    Station("Wanliu", 39.987, 116.287),
    Station("Wanshouxigong", 39.878, 116.352),
)  # fmt: skip
_STATION_SHA256 = (
    "a94fbcfc71708b6ffdc033360163d91efb7f675e496f6b5860929aa96b96351b",
    "a2e21402a6d95fb7043f87959e6e3dcbecb957aac356a6f8028a85b047c772e7",
    "3d8dff81f18a80d9f455876a785642bffe1e9b9924ec1e6b7ce8cca790432eeb",
    "9c0020214425e5ee2a64d42f97a1f632e1d8f6b53ad50edd85a686cc7999f27e",
    "59390fee3b032597b387491f5230e7edb90a8558e30217ebd6d9befbe669fbf9",
    "10ae48801ea55869fee56a48b885fb1127859c130551888d71673f34216ba951",
    "812dcbe848b3ba2c2d25731064797bff803c46eb0c602156a1fa044df136dc26",
    "572cf87b65ef543cd55d3a711b28474def224a46b0ec3fc8add8aaf13b67a487",
    "520b59e4ead3b0cfe7f1ed673e30275de8441e999db6f413d5172d2277b8c15a",
    "0743e34799cf1ee36195b73321b91baa5625276532e7263c588f68cdef3b4daa",
    "0b1a6d754a07f0def2f55434ddfa3870dcd0063b7f766a6f66b6c11bb05a377a",
    "ab1d6a356d6997a45f6d657ad47de1e05a4a08d4a7015b38a329a90665ab74d0",
)
_STATION_COLUMNS = (
    "No", "year", "month", "day", "hour", "PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES",
    "DEWP", "RAIN", "wd", "WSPM", "station",
)  # fmt: skip

_BEIJING = DataSet(
    name="beijing-air",
    title="Fine dust at twelve stations in Beijing, hourly, March 2013 to February 2017",
    origin=Origin(
        "Beijing Multi-Site Air Quality", 501, "10.24432/C5RK5G",
        f"{_ARCHIVE}/501/beijing+multi+site+air+quality+data.zip",
        "Zhang, S. et al., Cautionary tales on air-quality improvement in Beijing, Proceedings of"
        " the Royal Society A 473 (2017)",
    ),
    task="time series",
    target="PM2.5",
    n_inputs=11,
    paper_rows=None,
    usable="35064 hours of each station, but for the first 24 and as many at the end as the horizon"
    " has; both rules use all of them",
    editions=tuple(
        Edition(
            name=station.name, file=f"PRSA_Data_{station.name}_20130301-20170228.csv", rows=35064,
            state="a station's file, from a public copy of UCI's archive", has_gaps=True,
            columns=_STATION_COLUMNS, target_bounds=(0, 1500), text=("wd", "station"),
            authors=AuthorsScale("declared", words="none; declared ranges are used instead"),
            sha256=sha256,
        )
        for station, sha256 in zip(_STATIONS, _STATION_SHA256, strict=True)
    ),
    stations=_STATIONS,
    nodes=NodeSet(
        what="stations", n_nodes=12, graph="nearest", lags=(1, 2, 3, 4, 24),
        inputs=("TEMP", "PRES", "DEWP", "WSPM", "hour"), time=("year", "month", "day", "hour"),
        unit="µg/m³",
    ),
    ranges={
        "PM2.5": (0, 500), "PM10": (0, 600), "SO2": (0, 200), "NO2": (0, 300), "CO": (0, 10000),
        "O3": (0, 500), "TEMP": (-20, 40), "PRES": (980, 1045), "DEWP": (-36, 29), "RAIN": (0, 50),
        "WSPM": (0, 10),
    },
    ranges_from="the end of the air quality index's scale, and the weather there",
)  # fmt: skip

# citylearn-homes: seventeen files, one a home

_HOME_SHA256 = (
    "7c80028c65f636dfdaea168447fddc1cd71da4cc16329e2e0fba1f723d2c916e",
    "9742af5be4e83606b0f0c9a83ecc6312b860a049cbced7e6142a169769b57cf9",
    "981b24cd13fdfc1ffc688fa7a96e83e138be073b5ec3e27cd4ce3e457bbe87f1",
    "eff80b585e2e839b95f591914c83e6daefad01884ab8acdd381cc0ba5134a530",
    "0579790ee34c11b8ba6b7430e1b85d0506353399da76621d018b552f8d5d62d9",
    "ead9a4c2a6c5ca2526dbf747584a84c06d5990eb62c9482db607dc5719c02176",
    "d140651d84c05dbd1f9a32a17fba5aaa21204685d37d508ebd17398783ccd1dc",
    "a912f82d8e11aef7e40f6e1af087ac975c5d41dd570dbba50eb5ac0a5f715db5",
    "9be368c246f58050f56fc64d31df2966be2e74127aade0b330b2c40849ca08d6",
    "d8e4abd5d71ce889423e3239244940ed1c7f7efd0312b17c313ec138883739a4",
    "c836eed05a64c8d1b1b1e01292f0dd1c4e41f884b5567020a8047af98fe506c9",
    "699e9a57a866d6e657974df00439f904b3775cd5bed64768704dd0bf4a8fdc83",
    "77a0bb52f706c32a67938e4db02796ac8ad16f97ab8665eb748a4d1824f0fbe2",
    "07f855121c0084552925579e7e33cf128050745b97e989a227570ef4e1470a1b",
    "67c4c0f78d4598394838b3ba3b853d84b3712de46022bd2aa56ab51b76873606",
    "16da28c7e6ea9bd496945e3e2d402d10aac6a1f71840b0f691a7539165ca0486",
    "cab102276853fce3455b2d21f3d8435e5381079de59a34390985d1f8bb9893c6",
)
_HOME_COLUMNS = (
    "month", "hour", "day_type", "daylight_savings_status", "indoor_dry_bulb_temperature",
    "average_unmet_cooling_setpoint_difference", "indoor_relative_humidity", "non_shiftable_load",
    "dhw_demand", "cooling_demand", "heating_demand", "solar_generation",
)  # fmt: skip
_CITYLEARN = "https://github.com/intelligent-environments-lab/CityLearn"

_HOMES = DataSet(
    name="citylearn-homes",
    title="Electricity of seventeen homes in Fontana, California, hourly, August 2016 to July 2017",
    origin=Origin(
        "CityLearn challenge 2022, phase all (not of UCI)", 0, "none",
        "https://raw.githubusercontent.com/intelligent-environments-lab/CityLearn/master/data"
        "/datasets/citylearn_challenge_2022_phase_all/",
        "Nweye, K. et al., The CityLearn Challenge 2022, NeurIPS competition track (2022)",
        licence="MIT", home=_CITYLEARN,
    ),
    task="time series",
    target="non_shiftable_load",
    other_targets=("solar_generation",),
    n_inputs=9,
    paper_rows=None,
    usable="8760 hours of each home, but for the first 23 and as many at the end as the horizon"
    " has; both rules use all of them",
    editions=tuple(
        Edition(
            name=str(i), file=f"Building_{i}.csv", rows=8760, has_gaps=True,
            state="a home's file, from a public copy", columns=_HOME_COLUMNS,
            target_bounds=(-1, 1e4), sha256=sha256,
            authors=AuthorsScale("declared", words="none; declared ranges are used instead"),
        )
        for i, sha256 in enumerate(_HOME_SHA256, start=1)
    ),
    stations=tuple(Station(str(i)) for i in range(1, 18)),
    nodes=NodeSet(
        what="homes", n_nodes=17, graph="circle", lags=(1, 2, 3, 24, 168),
        inputs=("hour", "weekday"), start="2016-08-01T00:00", step="1h", unit="kWh",
    ),
    ranges={"non_shiftable_load": (0, 10), "solar_generation": (0, 1000)},
    ranges_from="what a home of this kind draws in an hour, and PV of 1 kW in full sun",
)  # fmt: skip

# parking: one file, shipped

_PARKING = DataSet(
    name="parking",
    title="How full thirty car parks in Birmingham are, by day, October to December 2016",
    origin=Origin(
        "Parking Birmingham", 482, "10.24432/C51K5Z", f"{_ARCHIVE}/482/parking+birmingham.zip",
        "Stolfi, D. H., Alba, E. and Yao, X., Predicting car park occupancy rates in smart cities,"
        " Smart-CT (2017)",
    ),
    task="time series",
    target="share",
    other_targets=("Occupancy",),
    n_inputs=6,
    paper_rows=None,
    usable="35717 readings of thirty car parks, about every half hour from 8:00 to 16:30; days are"
    " missing, and two car parks have 162 and 88 readings only",
    editions=(
        Edition(
            name="shipped", file="parking_birmingham.csv", is_shipped=True, rows=35717,
            state="UCI's file, shipped with domkl",
            columns=("SystemCodeNumber", "Capacity", "Occupancy", "LastUpdated"),
            text=("SystemCodeNumber", "LastUpdated"), target_bounds=(-100, 1e4),
            authors=AuthorsScale("declared", words="none; declared ranges are used instead"),
            sha256="f1e28b9c697769a1a05cd20148241b60b1a73fee4907611163efc6fd9d12770a",
        ),
    ),
    nodes=NodeSet(
        what="car parks", n_nodes=30, graph="circle", lags=(1, 2, 45, 48),
        inputs=("hour",), time=("LastUpdated",), column="SystemCodeNumber",
        share=("Occupancy", "Capacity"), hold="1h", horizons=(1, 4), unit="of capacity",
    ),
    ranges={"share": (0, 1), "Occupancy": (0, 5000)},
    ranges_from="a car park that is empty or full",
)  # fmt: skip

_ALL = (
    _WEATHER, _CONDUCTIVITY, _WAVE, _TWITTER, _AIR, _TRAFFIC, _TEMPERATURE, _BEIJING, _HOMES,
    _PARKING,
)  # fmt: skip
DATASETS: dict[str, DataSet] = {each.name: each for each in _ALL}


def find(name: str) -> DataSet:
    """Look a data set up by its name."""
    if name not in DATASETS:
        raise ParameterError(f"data set must be one of {', '.join(DATASETS)}, got {name!r}")
    return DATASETS[name]
