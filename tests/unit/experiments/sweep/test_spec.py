"""A sweep file: what it stands for, and what is wrong with one, at once."""

import pytest

from domkl.algorithms.registry import ALGORITHMS
from domkl.errors import DomklError, ParameterError
from domkl.experiments.sweep.plan import make_plan, plain
from domkl.experiments.sweep.spec import DATA_KEYS, read_spec
from domkl.experiments.sweep.table import MEASURED
from domkl.graphs.kinds import KINDS

FILE = """\
[sweep]
trials = 3

[data]
name = ["traffic", "temperature"]
rounds = 20

[[graphs]]
connect = [0.25, 0.5]

[[graphs]]
kind = "ring"
learners = [4, 6]

[[algorithms]]
name = "domkl"
rho = [0.2, 2]
eta_g = [10, 100]

[[algorithms]]
name = "linear-rls"
"""


def spec_of(tmp_path, text):
    path = tmp_path / "rho.toml"
    path.write_text(text)
    return read_spec(path)


def test_a_file_stands_for_every_combination(tmp_path):
    spec = spec_of(tmp_path, FILE)
    plan = make_plan(spec)
    assert plan.name == "rho"
    assert len(plan.points) == 2 * 4 * 5
    labels = [point.labels for point in plan.points]
    assert {label["learners"] for label in labels if label["graph"] == "ring"} == {4, 6}
    assert {(x["rho"], x["eta_g"]) for x in labels if "rho" in x} == {
        (0.2, 10.0), (0.2, 100.0), (2.0, 10.0), (2.0, 100.0),
    }  # fmt: skip
    assert all(sum(unit.n_trials for unit in point.units) == 3 for point in plan.points)


def test_one_value_has_one_name():
    tables = {"data": {"rounds": 5}, "algorithms": [{"name": "domkl"}, {"name": "domkl", "rho": 2}]}
    assert len(make_plan(read_spec(tables)).points) == 1


def test_an_algorithm_with_one_kernel_has_a_bandwidth():
    tables = {"data": {"rounds": 5}, "algorithms": {"name": "dokl"}}
    found = [point.labels["bandwidth"] for point in make_plan(read_spec(tables)).points]
    assert found == [1e-3, 1e3]
    tables["algorithms"]["bandwidth"] = 0.1
    assert [p.labels["bandwidth"] for p in make_plan(read_spec(tables)).points] == [0.1]


def test_the_last_value_of_a_series_is_its_newest_lag():
    tables = {"data": {"rounds": 5}, "algorithms": {"name": "last-value"}}
    (point,) = make_plan(read_spec(tables)).points
    assert point.labels["newest_lag"] == 0


def test_units_are_cut_in_the_same_places_however_many_trials_there_are():
    tables = {"sweep": {"trials": 9}, "algorithms": {"name": "domkl"}}
    few = make_plan(read_spec(tables)).units
    tables["sweep"]["trials"] = 50
    many = make_plan(read_spec(tables)).units
    assert len(few) > 1
    assert [unit.key for unit in few[:-1]] == [unit.key for unit in many[: len(few) - 1]]


@pytest.mark.parametrize(
    "change",
    [
        {"sweep": {"seed": 2}},
        {"sweep": {"frequencies": 20}},
        {"sweep": {"dtype": "float32"}},
        {"data": {"rounds": 6}},
        {"data": {"rounds": 5, "scale": "none"}},
        {"data": {"rounds": 5, "name": "temperature"}},
        {"data": {"rounds": 5, "partition": "blocks"}},
        {"graphs": {"connect": 0.5}},
        {"graphs": {"kind": "ring"}},
        {"algorithms": {"name": "domkl", "rho": 1}},
        {"algorithms": {"name": "alone"}},
    ],
    ids=str,
)
def test_units_of_different_sweeps_are_never_mixed(change):
    tables = {"data": {"rounds": 5}, "algorithms": {"name": "domkl"}}
    (unit,) = make_plan(read_spec(tables)).units
    (other,) = make_plan(read_spec(tables | change)).units
    assert unit.key != other.key


def test_a_table_of_the_users_own(tmp_path):
    (tmp_path / "own.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i}\n" for i in range(40)))
    text = '[data]\ncsv = "own.csv"\ntarget = ["y", "b"]\n[algorithms]\nname = "domkl"\n'
    labels = [point.labels for point in make_plan(spec_of(tmp_path, text)).points]
    assert [(x["data"], x["target"], x["rounds"]) for x in labels] == [
        ("own.csv", "y", 4), ("own.csv", "b", 4),
    ]  # fmt: skip


BAD = [
    ("[sweep]\ntrails = 3\n", "rho.toml: sweep: sweep has no key 'trails'; it may have name, "),
    ("[swep]\ntrials = 3\n", "a sweep has no key 'swep'"),
    ('[data]\nnames = "traffic"\n', "data has no key 'names'"),
    ('[data]\nname = "rain"\n', "name must be one of weather"),
    ("[data]\nname = []\n", "name must not be empty: give a value, or a list"),
    ("[data]\nname = 3\n", "name must be one of"),
    ("[data]\nscale = 3\n", "scale must be a word in quotes, got 3"),
    ('[data]\nscale = "log"\n', "scale must be one of minmax"),
    ("[data]\nrounds = 0\n", "rounds must be an integer >= 1, got 0"),
    ('[data]\npartition = "deal"\n', "partition must be one of"),
    ("[graphs]\nconect = 0.3\n", "a graph of kind random has no key 'conect'; it may have kind"),
    ('[graphs]\nkind = ["random", "ring"]\nconnect = 0.3\n', "kind ring has no key 'connect'"),
    ("[graphs]\nconnect = []\n", "connect must not be empty"),
    ("[graphs]\nconnect = [0.25, 2]\n", "probability must be in (0, 1], got 2.0"),
    ("[graphs]\nlearners = 2.5\n", "learners must be an integer >= 1, got 2.5"),
    ("[graphs]\nlearners = 100000\n", "100000 learners need at least as many samples"),
    ('[graphs]\nkind = "regular"\nlearners = 5\ndegree = 3\n', "degree must be below"),
    ("[[algorithms]]\nrho = 3\n", "an algorithm must have a name"),
    ('[[algorithms]]\nname = "domkl"\n[[algorithms]]\nname = "dokl"\neta_g = 3\n',
     "rho.toml: algorithms 2: dokl has no key 'eta_g'"),
    ('[[algorithms]]\nname = "domkl"\nrho = []\n', "algorithms: rho must not be empty"),
    ('[[algorithms]]\nname = "domkl"\nrho = [1, -1]\n', "algorithms: rho must be > 0, got -1.0"),
    ('[[algorithms]]\nname = "domkl"\nrho = [1, 1.0]\n', "rho must not repeat a value"),
    ('[[algorithms]]\nname = "domkl"\nrho = [[1]]\n', "rho must hold numbers or words"),
    ('[[algorithms]]\nname = "dokl"\nbandwidth = 0\n', "bandwidth must be > 0"),
    ('[[algorithms]]\nname = "domkl"\nweights = "message-passing"\n[graphs]\nkind = "ring"\n',
     "domkl on a ring graph of 10 learners: DOMKL with message passing needs a graph without"),
    ("algorithms = []\n", "algorithms must not be empty"),
    ("data = 3\n", "data: must be a table, got 3"),
    ("sweep = 3\n", "sweep must be one table, got 3"),
    ('[sweep]\nname = "a/b"\n', "name must be letters, digits"),
    ("[sweep]\ntrials = 0\n", "trials must be an integer >= 1, got 0"),
    ('[sweep]\ndtype = "float16"\n', "dtype must be one of float64, float32"),
    ("[sweep\n", "rho.toml must be a TOML file"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_wrong_with_a_file_is_said_at_once(tmp_path, text, message):
    if "algorithms" not in text:
        text += '\n[[algorithms]]\nname = "domkl"\n'
    with pytest.raises(DomklError) as error:
        make_plan(spec_of(tmp_path, text))
    assert message in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ParameterError, match=r"cannot read the sweep file .*none.toml: No such"):
        read_spec(tmp_path / "none.toml")


def test_every_column_has_a_name_of_its_own():
    """Data, graphs and algorithms share one row."""
    fixed = [*MEASURED, "data", "graph", "learners", "algorithm", "frequencies", "dtype", "seed"]
    data = [key for key in DATA_KEYS if key != "name"]
    networks = {key for kind in KINDS.values() for key in kind.defaults}
    methods = {key for each in ALGORITHMS.values() for key in plain(each.make())} | {"bandwidth"}
    names = [*fixed, *data, *networks, *methods]
    assert sorted(set(names)) == sorted(names)
