"""Layers, light import, no global randomness, exported names, short functions, tests for all.

A rule is one test, which lists all that break it.
"""

import ast
import functools
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import domkl

SOURCE = Path(domkl.__file__).parent
TESTS = Path(__file__).parent
README = TESTS / "README.md"
LEVEL = {
    "errors": 0, "options": 0, "typing": 0, "rng": 0, "checks": 0, "storage": 0,
    "text": 0,
    "core": 1, "graphs": 1, "data": 1, "metrics": 1,
    "algorithms": 2, "speech": 2.3, "learner": 2.6,
    "sim": 3, "mesh": 3,
    "estimators": 4, "experiments": 4,
    "cli": 5,
    "__main__": 6,
}  # fmt: skip
#: third parties that each package may import; levels 0 to 2 stay with the scientific core
THIRD_PARTY = {
    "core": {"numpy", "scipy", "numba", "llvmlite"},
    "algorithms": {"numpy", "scipy"},
    "speech": {"numpy"},
    "learner": {"numpy"},
    "data": {"numpy", "platformdirs"},
    "graphs": {"numpy", "scipy", "pymetis"},
    "sim": {"numpy", "scipy", "numba", "mpi4py"},
    "experiments": {
        "numpy",
        "matplotlib",
        "jinja2",
        "markupsafe",
        "river",
        "lightgbm",
        "joblib",
        "distributed",
        "pyarrow",
    },
    "estimators": {"numpy", "scipy", "pandas", "polars", "river", "sklearn"},
    "cli": {"numpy", "tqdm"},
    "mesh": {
        "numpy",
        "cryptography",
        "starlette",
        "uvicorn",
        "h11",
        "prometheus_client",
        "zenoh",
        "paho",
    },
}
#: annotationlib since Python 3.14
STANDARD = sys.stdlib_module_names | {"annotationlib"}
FILES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")
NAMES = [path.relative_to(SOURCE).as_posix() for path in FILES]
MAX_LINES = 600  # lines of code of a file, by tools/lines.py


@functools.cache
def trees():
    """Give the syntax tree of each file of the package by its name."""
    return {name: ast.parse((SOURCE / name).read_text()) for name in NAMES}


def imports(tree):
    """(module, is at the top of the file) of every import."""
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or "", id(node) in top
        elif isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, id(node) in top


def is_allowed(here, module, is_top):
    """Whether a package may import a module, at the top of a file or inside a function."""
    first, _, rest = module.partition(".")
    if first == "domkl":
        there = rest.partition(".")[0]
        if not rest or there == here:
            return True
        if here == "algorithms" and LEVEL[there] == 1 and there != "core":
            return False
        return LEVEL[there] < LEVEL[here] or LEVEL[here] == LEVEL[there] == 0
    if first in STANDARD:
        return True
    is_placed = is_top or here in ("estimators", "experiments", "cli")
    return is_placed and first in THIRD_PARTY.get(here, {"numpy", "scipy"})


def test_imports_go_down():
    """Between packages; third parties as listed above, at the top of a file."""
    wrong = [
        f"{name} imports {module}{'' if is_top else ' inside a function'}"
        for name, tree in trees().items()
        for module, is_top in imports(tree)
        if not is_allowed(Path(name).parts[0].removesuffix(".py"), module, is_top)
    ]
    assert wrong == []


def test_the_rule_of_imports_refuses():
    wrong = [
        ("core", "domkl.sim.simulate"), ("sim", "domkl.mesh.node"), ("algorithms", "domkl.data"),
        ("core", "pandas"), ("mesh", "tqdm"),
    ]  # fmt: skip
    assert [each for each in wrong if is_allowed(*each, True)] == []
    assert not is_allowed("core", "numba", is_top=False)
    assert is_allowed("cli", "domkl.mesh.node", is_top=False)


#: names that Numba and llvmlite do not document, as other files would have to write them
PRIVATE = re.compile(
    r"numba\.core|llvmlite|\b(_cache|overloads|entry_point|targetctx|instance_class)\b"
)


def test_numbas_private_parts_are_in_one_file():
    """So a new release of Numba can break one file, which states the versions that were tested."""
    home = "core/numba_internals.py"
    found = []
    for name, tree in trees().items():
        for node in ast.walk(tree) if name != home else ():
            names = [getattr(node, "module", None), getattr(node, "attr", None)]
            names += [
                each.name for each in getattr(node, "names", ()) if isinstance(each, ast.alias)
            ]
            found += [f"{name}: {each}" for each in names if PRIVATE.search(each or "")]
    assert found == []
    assert PRIVATE.search((SOURCE / home).read_text())


#: modules that only POSIX systems have; names of signal and os that Windows lacks
POSIX = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
LACKING = ("signal.SIGHUP", "signal.SIGKILL", "os.fork", "os.statvfs", "os.O_DIRECTORY")
#: a node and what starts nodes; the commands for them are loaded when they are used
LINUX = (
    "mesh.operate.backup",
    "mesh.node",
    "mesh.store",
    "mesh.operate.doctor",
    "mesh.operate.launcher",
    "mesh.operate.page",
    "cli.mesh_",
)
WITHOUT_POSIX = """
import asyncio, importlib, os, signal, subprocess, sys
import joblib, matplotlib.pyplot, numba, platformdirs, scipy.sparse.csgraph, scipy.stats, tqdm
import distributed, lightgbm, mpi4py, pymetis, river, sklearn.utils.estimator_checks
import cryptography.x509, zenoh
for name in sys.argv[1].split(","):
    sys.modules[name] = None
for name in sys.argv[2].split(","):
    module, _, attribute = name.partition(".")
    delattr(sys.modules[module], attribute)
for name in sys.argv[3].split(","):
    importlib.import_module(name)
"""


@pytest.mark.slow
def test_the_library_imports_where_posix_is_not():
    """Simulator, estimators, sweeps and the commands for them: by construction for Windows too."""
    names = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in FILES]
    portable = [name for name in names if not name.startswith((*LINUX, "experiments.mesh_"))]
    wanted = ",".join(f"domkl.{name.removesuffix('.__init__')}" for name in portable)
    assert len(portable) > 130
    words = [",".join(POSIX), ",".join(LACKING), wanted.replace(",domkl.__main__", "")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_importing_domkl_is_light():
    code = (
        "import sys, domkl; domkl.DataError;"
        "heavy = {'numba', 'scipy', 'matplotlib', 'tqdm', 'sklearn', 'river'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_exported_names_exist():
    assert [name for name in domkl.__all__ if getattr(domkl, name) is None] == []
    assert sorted(set(domkl.__all__) - set(dir(domkl))) == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'DOMKXYZ'"):
        _ = domkl.DOMKXYZ


def test_no_global_randomness():
    used = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node).startswith("np.random.")
        and node.attr not in ("Generator", "default_rng")
    ]
    assert used == []


def code_lines(function):
    """Lines of a function's body that hold code: no docstring, comment or blank line."""
    body = function.body
    is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    nodes = (node for part in body[is_text:] for node in ast.walk(part))
    return len({node.lineno for node in nodes if hasattr(node, "lineno")})


def test_functions_stay_short():
    """No function needs a screen of its own, and most of them are a few lines."""
    lengths = {
        f"{name}: {node.name}": code_lines(node)
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert [name for name, n in lengths.items() if n > 60] == []
    ordered = sorted(lengths.values())
    assert ordered[len(ordered) // 2] <= 5
    assert ordered[9 * len(ordered) // 10] <= 15


def test_files_can_be_read_in_one_sitting():
    spec = importlib.util.spec_from_file_location("lines", TESTS.parent / "tools" / "lines.py")
    lines = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lines)
    found = {path.as_posix(): len(code) for path, code in lines.of_folder(SOURCE).items()}
    assert {name: n for name, n in found.items() if n > MAX_LINES} == {}


#: rows of tests/README.md that say where a module without a test file of its own name is tested
ELSEWHERE = dict(re.findall(r"^\| `([\w/]+\.py)` \| (.+) \|$", README.read_text(), re.M))
MODULES = {name for name in NAMES if not name.endswith("__init__.py")}


def test_every_module_has_tests():
    """In tests/unit/<folder>/test_<name>.py, or where tests/README.md says."""
    wrong = []
    for module in sorted(MODULES):
        path = Path(module)
        own = Path("unit") / path.parent / f"test_{path.name}"
        named = re.findall(r"`([^`]+)`", ELSEWHERE.get(module, ""))
        if (TESTS / own).exists() and module in ELSEWHERE:
            wrong.append(f"tests/README.md: {module} has tests of its own by now")
        elif not (TESTS / own).exists() and not named:
            wrong.append(f"write tests/{own}, or a row in tests/README.md for {module}")
        missing = [name for name in named if not (TESTS / name).is_file()]
        wrong += [f"tests/README.md: there is no {name}" for name in missing]
    assert wrong == []


def test_the_page_of_the_tests_names_what_is_there():
    assert sorted(set(ELSEWHERE) - MODULES) == []
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] not in "._"}
    listed = set(re.findall(r"^\| `(\w+)/` \|", README.read_text(), re.M))
    assert listed == folders


#: classes that several modules of a layer have under one name, because each is the module's own
SHARED_NAMES = {"State", "Message", "SingleState", "SingleMessage", "Params"}
SHARED_NAMES |= {"OnlineKernelRegressor", "OnlineKernelClassifier", "_Online", "_Parameters"}


def test_a_class_name_has_one_home_in_a_layer():
    homes = {}
    for file, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in SHARED_NAMES:
                homes.setdefault((file.split("/")[0], node.name), []).append(file)
    assert {key: files for key, files in homes.items() if len(files) > 1} == {}
