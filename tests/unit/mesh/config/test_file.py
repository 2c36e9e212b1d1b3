"""The mesh file: what is written reads back, and every mistake has its one line."""

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domkl.algorithms.admm import DOKL, DOMKL
from domkl.algorithms.diffusion import RFFDOKL, RFFDOMKL
from domkl.algorithms.least_squares import DOMKRLS
from domkl.algorithms.registry import ALGORITHMS
from domkl.core.kernels import Linear
from domkl.core.losses import Absolute, Huber, Pinball
from domkl.errors import DataError, ParameterError
from domkl.mesh.config.file import Member, MeshConfig, config_of, read_config, write_config
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Range
from domkl.mesh.transports.base import Address


def members(*names):
    return tuple(
        Member(name, Address("127.0.0.1", 21000 + k), Address("127.0.0.1", 22000 + k))
        for k, name in enumerate(names)
    )


def a_config(**given):
    given = {"members": members("a", "b", "c"), "edges": (("a", "b"), ("b", "c"))} | given
    return MeshConfig(**({"target": Range("load", 0.0, 10.0), "lags": 2} | given))


TABLE = """
name = "plant"
edges = [["a", "b"]]

[target]
name = "power"
low = 0
high = 500

[[inputs]]
name = "wind"
low = 0.0
high = 40.0

[model]
algorithm = "domkl"
kernels = [0.1, 1.0]
linear = true

[model.parameters]
rho = 3.0

[[learners]]
name = "a"
address = "10.0.0.1:21000"
http = "127.0.0.1:22000"

[[learners]]
name = "b"
address = "10.0.0.2:21000"
http = "127.0.0.1:22001"
"""


def read(tmp_path, text):
    path = tmp_path / "mesh.toml"
    path.write_text(text, encoding="utf-8")
    return read_config(path)


def test_a_file_of_hand(tmp_path):
    config = read(tmp_path, TABLE)
    assert config.names == ("a", "b")
    assert config.target == Range("power", 0.0, 500.0)
    assert config.algorithm == DOMKL(rho=3.0)
    assert config.neighbors("a") == ("b",)
    assert config.member("b").address == Address("10.0.0.2", 21000)
    assert config.timing == Timing()
    assert isinstance(config.bank()[-1], Linear)
    assert config.model().features.n_kernels == 3


NEW = "\n[model]\n"
#: (old, new, message) of a file with one mistake
WRONG = [
    ('name = "plant"', 'nmae = "plant"', "nmae is not a key of a mesh file; did you mean name?"),
    ('name = "plant"', "name = 3", "name must be text, got 3"),
    ('name = "plant"', 'mode = "fast"', "mode must be one of lockstep, async, got 'fast'"),
    ('name = "plant"', "queue = 0", "queue must be an integer >= 1, got 0"),
    ("[model]", "[model]\nfrequencies = 99999", "model.frequencies must be at most 10000"),
    ("[model]", "[model]\ndelay = -1", "model.delay must be an integer >= 0, got -1"),
    ('name = "plant"', "lags = 3", "inputs and lags exclude each other; drop one of them"),
    (
        'name = "plant"',
        'name = "The Plant"',
        "name: name must be 1 to 63 of a-z, 0-9 and -, and not begin with -, got 'The Plant'",
    ),
    (
        'name = "plant"',
        'router = "r:7447"',
        "router is for transport zenoh, got 'r:7447' with tls",
    ),
    (
        '[["a", "b"]]',
        '[["a", "zz"]]',
        "edges must join learners, got a - zz: there is no learner 'zz'",
    ),
    ('[["a", "b"]]', '[["a", "a"]]', "edges must join two different learners, got a - a"),
    ('[["a", "b"]]', '[["a", "b"], ["b", "a"]]', "edges must be different, got b - a twice"),
    ('[["a", "b"]]', "[]", "edges must connect all learners, got no way from a to b; add an edge"),
    (
        '[["a", "b"]]',
        '["a-b"]',
        'edges must be pairs of names such as ["a", "b"], got \'a-b\'',
    ),
    (
        '"127.0.0.1:22001"',
        '"10.0.0.2:21000"',
        "http of b must have a port of its own, got '10.0.0.2:21000', taken by address of b",
    ),
    (
        '"127.0.0.1:22001"',
        '"0.0.0.0:21000"',
        "http of b must have a port of its own, got '0.0.0.0:21000', taken by address of b",
    ),
    (
        '"10.0.0.2:21000"',
        '"10.0.0.1:21000"',
        "address of b must have a port of its own, got '10.0.0.1:21000', taken by address of a",
    ),
    (
        '"10.0.0.2:21000"',
        '"0.0.0.0:21000"',
        "address of b must be one that neighbors can dial, got '0.0.0.0:21000'",
    ),
    (
        '"10.0.0.2:21000"',
        '"10.0.0.2:0"',
        "address of b must have a port of 1 to 65535, got '10.0.0.2:0'",
    ),
    (
        '"10.0.0.2:21000"',
        '"10.0.0.2"',
        "learners[1].address: address must be host:port with a port up to 65535, got '10.0.0.2';"
        " write an IPv6 host in brackets, as [::1]:7447",
    ),
    (
        "high = 500",
        "high = -1",
        "target: range of power must be finite with low < high, got low 0.0, high -1.0",
    ),
    ("high = 500", "", "target.high is missing"),
    ("high = 500", 'high = "much"', "target.high must be a number, got 'much'"),
    ("high = 500", "high = true", "target.high must be a number, got True"),
    (
        'name = "wind"',
        'name = "power"',
        "inputs and target must have different names, got 'power' twice",
    ),
    (
        '"domkl"',
        '"comkl"',
        "model.algorithm must be one of domkl, domkrls, dokl, rff-dokl, rff-domkl or module:Name,"
        " got 'comkl'",
    ),
    (
        '"domkl"',
        '"dokl"',
        "model.kernels must be one for dokl, got 3; or take domkl or domkrls",
    ),
    (
        "rho = 3.0",
        "forget = 0.5",
        "model.parameters.forget is not a key of a mesh file of domkl;"
        " known are rho, eta_l, eta_g, loss, weights",
    ),
    ("rho = 3.0", "rho = -1.0", "model.parameters: rho must be > 0, got -1.0"),
    (
        "rho = 3.0",
        'loss = "cubic"',
        "model.parameters.loss must be one of squared, huber, absolute, pinball, logistic or"
        " module:Name, got 'cubic'",
    ),
    (
        "rho = 3.0",
        'loss = { name = "huber", level = 1.0 }',
        "model.parameters.loss.level is not a key of a mesh file of huber; known are name, delta",
    ),
    (
        "rho = 3.0",
        'loss = "logistic"',
        "model.parameters.loss must suit a target on a range, got 'logistic';"
        " a mesh predicts numbers, not classes",
    ),
    ("[0.1, 1.0]", "[0.1, 0]", "model.kernels, number 2, must be > 0, got 0.0"),
    ("[0.1, 1.0]", '"default"', "model.linear is for bandwidths in model.kernels, got 'default'"),
    (
        "[0.1, 1.0]",
        '"all"',
        "model.kernels must be \"default\" or a list of bandwidths, got 'all'",
    ),
    ('name = "b"', 'name = "a"', "learners must have different names, got 'a' twice"),
    (
        'name = "b"',
        'name = "b"\nport = 1',
        "learners[1].port is not a key of a mesh file; known are",
    ),
    ("[model]", "[timing]\nsilence = 0.5\n[model]", "timing.silence must be above"),
    ("[model]", "[timing]\nidle_after = 0\n[model]", "timing.idle_after must be > 0, got 0.0"),
    ("[target]", "[target", "must be a TOML file: "),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[w[2][:40] for w in WRONG])
def test_a_mistake_has_one_line(tmp_path, old, new, message):
    assert TABLE.count(old) == 1
    with pytest.raises(DataError) as caught:
        read(tmp_path, TABLE.replace(old, new))
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'mesh.toml'}: {message}")
    assert "\n" not in said


def test_a_part_that_is_missing(tmp_path):
    with pytest.raises(DataError, match=r"mesh\.toml: learners is missing"):
        read(tmp_path, TABLE[: TABLE.index("[[learners]]")])
    with pytest.raises(DataError, match=r"cannot read the mesh file .*: No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(DataError, match="must be a TOML file"):
        read_config(tmp_path / "latin.toml")


def test_message_passing_takes_no_cycle():
    ring = (("a", "b"), ("b", "c"), ("c", "a"))
    path = a_config(algorithm=DOMKL(weights="message-passing"))
    assert path.algorithm.needs_acyclic
    with pytest.raises(ParameterError, match=r"no cycle .* got 3 edges for 3 learners"):
        replace(path, edges=ring)


def test_loopback_is_that_of_the_own_machine(tmp_path):
    same = TABLE.replace("127.0.0.1:22001", "127.0.0.1:22000")
    assert read(tmp_path, same).member("b").http == Address("127.0.0.1", 22000)
    with pytest.raises(DataError, match=r"http of b .* '127.0.0.1:22000', taken by http of a"):
        read(tmp_path, same.replace("10.0.0.1:", "localhost:").replace("10.0.0.2:21", "[::1]:23"))


def test_neighbors_come_in_the_order_of_the_file():
    names = members("c", "a", "b")
    config = a_config(members=names, edges=(("b", "c"), ("a", "c")))
    assert config.neighbors("c") == ("a", "b")
    with pytest.raises(ParameterError, match="learner must be one of c, a, b, got 'd'"):
        config.neighbors("d")


def test_places_are_optional_and_two_numbers(tmp_path):
    placed = TABLE.replace('22001"\n', '22001"\nplace = [16.4, 48]\n')
    config = read(tmp_path, placed)
    assert [each.place for each in config.members] == [None, (16.4, 48.0)]
    write_config(tmp_path / "again.toml", config)
    assert read_config(tmp_path / "again.toml") == config
    for wrong in ("[1]", "[1, 2, 3]", '["x", 1]', "3", "[inf, 1]"):
        with pytest.raises(DataError, match=r"learners\[1\].place must be"):
            read(tmp_path, placed.replace("[16.4, 48]", wrong))


def test_a_series_has_its_target_as_inputs():
    config = a_config(lags=3)
    assert config.inputs == tuple(Range(f"lag {k}", 0.0, 10.0) for k in (1, 2, 3))
    assert config.model().features.n_inputs == 3
    with pytest.raises(ParameterError, match="inputs must name at least one column"):
        a_config(lags=None)
    with pytest.raises(ParameterError, match="lags must be at most 10000, got 100000000"):
        a_config(inputs=(), lags=100_000_000)


def test_default_kernels_suit_the_algorithm():
    meshable = {each.name: each.make for each in ALGORITHMS.values() if each.is_meshable}
    for name, make in meshable.items():
        n_kernels = a_config(algorithm=make()).model().features.n_kernels
        assert n_kernels == {"domkrls": 9, "dokl": 1, "rff-dokl": 1}.get(name, 17)


def test_nothing_is_left_where_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "mesh.toml"
    write_config(path, a_config())
    before = path.read_text()
    monkeypatch.setattr(
        "domkl.mesh.config.file.as_text", lambda config: (_ for _ in ()).throw(OSError)
    )
    with pytest.raises(OSError):
        write_config(path, a_config(seed=2))
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


names = st.from_regex(re.compile(r"[a-z0-9][a-z0-9-]{0,20}", re.ASCII), fullmatch=True)
printable = st.text(min_size=1, max_size=20).filter(lambda t: t.strip() and t.isprintable())
positive = st.floats(1e-12, 1e12)
losses = st.one_of(
    st.builds(Huber, positive), st.just(Absolute()), st.builds(Pinball, st.floats(0.01, 0.99))
)
several = st.one_of(
    st.builds(DOMKRLS, forget=st.floats(0.1, 1), ridge=positive),
    st.builds(DOMKL, rho=positive, eta_l=positive, eta_g=positive, loss=losses),
    st.builds(RFFDOMKL, step=positive),
)
single = st.one_of(st.builds(DOKL, rho=positive, loss=losses), st.builds(RFFDOKL, step=positive))
hosts = st.sampled_from(["127.0.0.1", "::1", "pi-3.local", "10.0.0.7"])


@st.composite
def ranges(draw, n):
    called = draw(st.lists(printable, min_size=n, max_size=n, unique=True))
    low = [draw(st.floats(-1e9, 1e9)) for _ in called]
    return tuple(Range(c, a, a + draw(st.floats(1, 1e9))) for c, a in zip(called, low, strict=True))


@st.composite
def configs(draw):
    called = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    made = [
        Member(name, Address(draw(hosts), 1000 + k), Address(draw(hosts), 2000 + k))
        for k, name in enumerate(called)
    ]
    edges = tuple((called[draw(st.integers(0, k - 1))], called[k]) for k in range(1, len(called)))
    target, *inputs = draw(ranges(draw(st.integers(2, 4))))
    is_series, is_listed = draw(st.booleans()), draw(st.booleans())
    transport = draw(st.sampled_from(["tls", "zenoh"]))
    return MeshConfig(
        members=tuple(made),
        edges=edges,
        target=target,
        inputs=() if is_series else tuple(inputs),
        lags=draw(st.integers(1, 6)) if is_series else None,
        outside=draw(st.sampled_from(["clip", "refuse"])),
        algorithm=draw(several if is_listed else st.one_of(several, single)),
        kernels=tuple(draw(st.lists(positive, min_size=1, max_size=3))) if is_listed else "default",
        linear=draw(st.booleans()) and is_listed,
        n_frequencies=draw(st.integers(1, 200)),
        seed=draw(st.integers(0, 2**40)),
        dtype=draw(st.sampled_from(["float64", "float32"])),
        delay=0 if is_series else draw(st.integers(0, 30)),
        name=draw(names),
        mode=draw(st.sampled_from(["lockstep", "async"])),
        transport=transport,
        router=Address("router", 7447) if transport == "zenoh" and draw(st.booleans()) else None,
        timing=Timing(*draw(st.tuples(positive, positive, positive, st.floats(0.1, 1))), 1.5),
        checkpoint_every=draw(st.integers(1, 10**6)),
        queue=draw(st.integers(1, 10**6)),
    )


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(config=configs())
def test_what_is_written_reads_back(tmp_path, config):
    path = tmp_path / "mesh.toml"
    write_config(path, config)
    assert read_config(path) == config


FORECAST = {"horizons": [1, 6], "lags": [1, 2, 24], "calendar": ["hour"], "step": "30min"}


def with_forecast(**changes):
    table = {
        "target": {"name": "load", "low": 0, "high": 100},
        "inputs": [{"name": "temp", "low": -20, "high": 40}],
        "learners": [{"name": "a", "address": "127.0.0.1:21000", "http": "127.0.0.1:22000"}],
    }
    return table | {"forecast": {k: v for k, v in (FORECAST | changes).items() if v is not None}}


def test_forecasts_are_read_and_written(tmp_path):
    made = config_of(with_forecast())
    write_config(tmp_path / "mesh.toml", made)
    assert read_config(tmp_path / "mesh.toml") == made
    assert [each.horizon for each in made.models()] == [1, 6]
    assert [each.name for each in made.model().inputs] == [
        "load lag 1", "load lag 2", "load lag 24", "temp", "hour sine", "hour cosine"
    ]  # fmt: skip
    assert len({each.fingerprint for each in made.models()}) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"horizons": None}, "forecast.horizons is missing"),
        ({"horizons": [0]}, "forecast: horizons must be an integer >= 1, got 0"),
        ({"horizons": ["a"]}, "forecast.horizons, number 1, must be an integer"),
        ({"step": "1 fortnight"}, "forecast: a duration must be a number with"),
        ({"calendar": ["month"]}, "forecast: calendar must be one of hour, weekday, yearday"),
        ({"ahead": ["wind"]}, "forecast: ahead must name inputs, temp, got 'wind'"),
        ({"season": "10min"}, "forecast: season must be at least one step of 30min"),
        ({"lag": 3}, "forecast.lag is not a key of a mesh file; did you mean lags"),
    ],
)
def test_wrong_forecasts_say_why(changes, said):
    with pytest.raises(ParameterError, match=said):
        config_of(with_forecast(**changes))


def test_forecasts_have_lags_of_their_own():
    with pytest.raises(ParameterError, match=r"drop lags and model\.delay"):
        config_of(with_forecast() | {"model": {"delay": 3}})
