"""Build wheel and sdist, reproducibly, and try them: python tools/dist.py ACTION

build     from the committed files, twice, in two folders; the digests must be equal
try       install wheel and sdist into empty environments and run tools/smoke.py there; and the
          wheel once more, with what it needs from requirements.lock, by hash
test      install the wheel into an empty environment and run the tests of the sdist against it
pythons   install the wheel under every supported Python that is found here, and run tools/smoke.py
numbas    install the wheel with several versions of Numba, or those that follow, and run
          tools/hosts.py twice: the second time with the binaries that the first has stored

Everything but dist/ lies in a temporary folder. Packages come from where pip is set up to look.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
#: one release of each Numba that pyproject.toml allows
NUMBAS = ("0.61.2", "0.62.1", "0.63.1", "0.64.0", "0.65.1", "0.66.0", "0.67.0", "0.68.1")
#: the packages whose versions go with that of Numba
FREE = ("numba", "llvmlite", "numpy")
EXTRAS = "mesh,reports,sklearn"
#: what `test` runs; left out are the tests of these tools, and those that start processes, drive a
#: browser or take long to compile
TESTS = ("tests/unit", "tests/contracts", "--ignore=tests/unit/tools", "-m", "not slow")


def run(*words: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command; what it prints."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(str(word) for word in words)} ended with {done.returncode}")
    return done.stdout.strip()


def empty(folder: Path, python: str) -> tuple[Path, tuple[str | Path, ...]]:
    """A virtual environment with nothing; its Python, and the command that installs."""
    run(python, "-m", "venv", folder)
    made = folder / "bin" / "python"
    return made, (made, "-m", "pip", "--quiet", "--disable-pip-version-check", "install")


def environment(folder: Path, python: str, *packages: str, free: tuple[str, ...] = ()) -> Path:
    """A virtual environment with these packages; its Python. Some need not have their pins."""
    made, pip = empty(folder, python)
    pins = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    kept = folder / "constraints.txt"
    kept.write_text("".join(row for row in pins if row.split("==")[0] not in free))
    run(*pip, "-c", kept, *packages)
    return made


def locked(folder: Path, python: str, package: Path) -> Path:
    """A virtual environment with the lock file's packages and a built file; its Python."""
    made, pip = empty(folder, python)
    run(*pip, "--require-hashes", "-r", ROOT / "requirements.lock")
    run(*pip, "--no-deps", package)
    run(made, "-m", "pip", "check")
    return made


def build() -> list[Path]:
    """Build twice from the last commit; put the files into dist/ if both are equal."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    moment = run("git", "log", "-1", "--format=%ct")
    digests: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(folder / "env", sys.executable, *needs)
        for place in ("first", "second"):
            tree = folder / place
            tree.mkdir()
            run("git", "archive", "--output", folder / "tree.tar", "HEAD")
            shutil.unpack_archive(folder / "tree.tar", tree, filter="data")
            out = folder / f"{place}-dist"
            build_words = ("-m", "hatchling", "build", "-d", out)
            run(python, *build_words, cwd=tree, SOURCE_DATE_EPOCH=moment)
            digests.append({path.name: _digest(path) for path in sorted(out.iterdir())})
        if digests[0] != digests[1]:
            sys.exit(f"two builds must be equal, got {digests[0]} and {digests[1]}")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(out, DIST)
    for file, digest in digests[0].items():
        print(f"{digest}  dist/{file}")
    return sorted(DIST.iterdir())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def built(suffix: str) -> Path:
    """The one file of dist/ that ends so."""
    found = sorted(DIST.glob(f"*{suffix}"))
    if len(found) != 1:
        sys.exit(f"dist must have one *{suffix}, got {len(found)}; run tools/dist.py build first")
    return found[0]


def smoke(python: str, package: Path, from_lock: bool = False) -> None:
    """Install a built file into an empty environment, and try it there."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if from_lock:
            made = locked(folder / "env", python, package)
        else:
            made = environment(folder / "env", python, f"domkl[{EXTRAS}] @ {package.as_uri()}")
        work = folder / "work"
        work.mkdir()
        said = run(made, "-I", ROOT / "tools" / "smoke.py", cwd=work, NUMBA_CACHE_DIR=str(folder))
    how = " from requirements.lock" if from_lock else ""
    print(f"{package.name}{how}: {said}; {time.monotonic() - start:.0f} s", flush=True)


def test() -> None:
    """Run the unit and contract tests of the sdist, without its src, against the wheel."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = environment(folder / "env", sys.executable, f"domkl[dev] @ {built('.whl').as_uri()}")
        shutil.unpack_archive(built(".tar.gz"), folder / "sdist", filter="data")
        (tree,) = (folder / "sdist").iterdir()
        shutil.rmtree(tree / "src")
        found = run(made, "-c", "import domkl; print(domkl.__file__)", cwd=tree, PYTHONPATH="")
        if not Path(found).is_relative_to(folder / "env"):
            sys.exit(f"the tests must find domkl in the new environment, got {found}")
        installed = time.monotonic()
        words = (made, "-m", "pytest", *TESTS, "-n", str(os.cpu_count() or 1))
        done = subprocess.run(words, cwd=tree, env=os.environ | {"PYTHONPATH": ""})
        end = time.monotonic()
    took = f"{installed - start:.0f} s to install, {end - installed:.0f} s to test"
    print(f"{built('.whl').name}: {' '.join(TESTS)}; {took}", flush=True)
    if done.returncode:
        sys.exit(f"the tests of the installed package ended with {done.returncode}")


def pythons() -> None:
    """Try the wheel under every supported Python that is here; say which are not."""
    missing = []
    for version in SUPPORTED:
        python = _python(version)
        if python is None:
            missing.append(version)
        else:
            smoke(python, built(".whl"))
    if missing:
        print(f"not found here, and not tried: Python {', '.join(missing)}")


def numbas(versions: list[str]) -> None:
    """Compare the hosts with each of these versions of Numba; say which fail."""
    failed = []
    for version in versions:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            wanted = (f"numba=={version}", f"domkl @ {built('.whl').as_uri()}")
            made = environment(folder / "env", sys.executable, *wanted, free=FREE)
            words = (made, "-I", ROOT / "tools" / "hosts.py")
            surroundings = os.environ | {"NUMBA_CACHE_DIR": str(folder / "binaries")}
            digests = set()
            for _ in range(2):
                done = subprocess.run(
                    words, cwd=folder, env=surroundings, stdout=subprocess.PIPE, text=True
                )
                print(done.stdout, end="", flush=True)
                digests.add(done.stdout.split()[-1] if done.returncode == 0 else "failed")
            if len(digests) > 1 or "failed" in digests:
                failed.append(version)
    if failed:
        sys.exit(f"hosts differ, or do not run, with numba {', '.join(failed)}")


def _python(version: str) -> str | None:
    """An interpreter of this version: on the path, or of pyenv."""
    places = [shutil.which(f"python{version}")]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places += [str(each / "bin" / "python") for each in sorted(root.glob(f"{version}.*"))]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for place in places:
        if place is None:
            continue
        done = subprocess.run([place, "-c", ask], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return place
    return None


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("build", "try", "test", "pythons", "numbas"))
    parser.add_argument("versions", nargs="*", help="of Numba, for numbas")
    args = parser.parse_args()
    action = args.action
    if action == "build":
        build()
    elif action == "try":
        for suffix in (".whl", ".tar.gz"):
            smoke(sys.executable, built(suffix))
        smoke(sys.executable, built(".whl"), from_lock=True)
    elif action == "test":
        test()
    elif action == "numbas":
        numbas(args.versions or list(NUMBAS))
    else:
        pythons()


if __name__ == "__main__":
    main()
