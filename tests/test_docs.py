"""The documents are true: their code runs, their rows point at something, their help is current."""

import argparse
import importlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import domkl
from domkl.cli.main import main, parser
from domkl.experiments.reproduce import PARTS
from domkl.experiments.reproduce.document import as_markdown, figures_of

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _name(page):
    return str(page.relative_to(ROOT))


WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=_name)
def test_python_blocks_run(page, capsys, tmp_path, monkeypatch):
    text = page.read_text()
    for name, content in re.findall(r"```python file=(\S+)\n(.*?)```", text, re.S):
        (tmp_path / name).write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "__main__"})


@pytest.mark.slow
def test_the_example_prints_what_its_comment_says(capsys, tmp_path, monkeypatch):
    test_python_blocks_run(ROOT / "README.md", capsys, tmp_path, monkeypatch)
    first = capsys.readouterr().out.splitlines()[0]
    pattern = re.escape("Run(649 rounds, mse=0.0..., cv=0.00...)").replace(r"\.\.\.", r"\d+")
    assert re.fullmatch(pattern, first)


def test_the_user_algorithm_is_fifty_lines():
    text = (ROOT / "docs/tutorial/own-algorithm.md").read_text()
    (block,) = re.findall(r"```python file=gossip.py\n(.*?)```", text, re.S)
    assert len(block.splitlines()) <= 50


@pytest.mark.slow
def test_the_readme_table_is_what_the_main_job_prints(tmp_path, monkeypatch, capsys):
    """The numbers, not the seconds; on another processor the last digits may differ."""
    monkeypatch.chdir(tmp_path)
    assert main(["simulate"]) == 0
    printed = _rows(capsys.readouterr().out)
    written = _rows((ROOT / "README.md").read_text())
    assert printed.keys() == written.keys()
    for name, numbers in written.items():
        assert printed[name] == pytest.approx(numbers, rel=1e-3), name


def _rows(text):
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 9 and re.fullmatch(r"[a-z-]+", words[0]) and words[1][0].isdigit():
            found[words[0]] = [float(word) for word in words[1:8]]
    return found


def test_readme_commands_parse():
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"^domkl ((?:simulate|sweep|data|reproduce|mesh) .*)$", text, re.M)
    commands += re.findall(r"`domkl (simulate [^`]+)`", text)
    assert len(commands) >= 4
    for command in commands:
        parser().parse_args(shlex.split(command, comments=True))
    targets = re.findall(r"^make (\w+)", text, re.M)
    assert targets == ["run", "test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_the_readme_says_how_the_command_is_called(tmp_path):
    """After `make run`, in a shell that has no domkl on its path."""
    text = (ROOT / "README.md").read_text()
    venv, command = re.search(r"the command is `((\S+)/bin/domkl)`", text).group(2, 1)
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^VENV +:= {re.escape(venv)}$", makefile, re.M)
    (activate,) = re.findall(r"^(\. \S+/activate)\b", text, re.M)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / venv], check=True)
    script = tmp_path / command
    script.write_text(f"#!{sys.executable}\nfrom domkl.cli.main import entry\nentry()\n")
    script.chmod(0o755)
    source = str(Path(domkl.__file__).parents[1])
    environ = {"PATH": os.defpath, "PYTHONPATH": source}
    for words in (f"{command} --version", f"{activate} && domkl --version"):
        done = subprocess.run(
            words, shell=True, cwd=tmp_path, env=environ, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), words
        assert domkl.__version__ in done.stdout


@pytest.mark.slow
def test_the_sweep_of_the_readme_runs(tmp_path, capsys):
    text = (ROOT / "README.md").read_text()
    (command,) = re.findall(r"^domkl (sweep .*)$", text, re.M)
    words = [str(ROOT / word) if word.endswith(".toml") else word for word in command.split()]
    assert main([*words, "--workers", "1", "--out", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 2 * 2 * 6
    block = re.search(r"```toml\n(.*?)```", (ROOT / "docs/howto/sweeps.md").read_text(), re.S)
    assert block[1] == (ROOT / "docs/howto/rho.toml").read_text()


#: questions of a new user, and what must stand where the README leads with the first click
ANSWERS = {
    "How do I predict my CSV?": "domkl simulate --csv",
    "How do I forecast a day?": "To forecast a day of hourly data, take 24",
    "How do I run five nodes?": "domkl mesh up my-mesh",
    "How do I see whether they are well?": "domkl mesh status my-mesh",
    "How do I add one?": "domkl mesh add mesh",
    "How do I survive a stolen device?": "domkl mesh rotate-keys my-mesh --authority retire",
    "How do I write an algorithm?": "domkl.CompiledAlgorithm",
    "How do I reproduce the paper?": "domkl reproduce all",
    "How do I cite it?": "cff-version",
    "How do I report a hole?": "private reporting form",
}


@pytest.mark.parametrize("question", ANSWERS)
def test_the_readme_leads_to_an_answer(question):
    """One click: three are allowed."""
    found = re.search(rf"^\| {re.escape(question)} \| \[[^]]+\]\(([^)]+)\) \|$", README, re.M)
    path, _, heading = found[1].partition("#")
    text = (ROOT / path).read_text()
    if heading:
        parts = re.split(r"^(#+ .*)$", text, flags=re.M)
        (text,) = [b for a, b in zip(parts[1::2], parts[2::2], strict=True) if _slug(a) == heading]
    assert ANSWERS[question] in text


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def _commands_of(text):
    """Lines of code blocks that begin with domkl, as a shell would read them."""
    for block in re.findall(r"```\n(.*?)```", text, re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match("domkl [a-z]", line) and "--help" not in line:
                yield line.removeprefix("domkl ").split(" < ")[0]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_parse(page):
    for command in _commands_of(page.read_text()):
        parser().parse_args(shlex.split(command, comments=True))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_placeholder_is_left(page):
    assert not re.search(r"@[A-Z_]+@|TODO|TBD", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page):
    """Files, and headings in them; `make docs` checks the links of the site as built."""
    for link in re.findall(r"\]\(([^)\s]+)\)", _without_code(page.read_text())):
        if not link.startswith("https://"):
            path, _, heading = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not heading or heading in _anchors(target), link


def _without_code(text):
    return re.sub(r"```.*?```", "", text, flags=re.S)


def _anchors(page):
    """Headings as GitHub and MyST make them addresses."""
    titles = re.findall(r"^#+ (.*)$", _without_code(page.read_text()), re.M)
    included = re.match(r"```\{include\} (\S+)", page.read_text())
    if included:
        return _anchors(page.parent / included[1])
    return {_slug(title) for title in titles}


def _slug(title):
    return re.sub(r"[^\w\- ]", "", title.lower().lstrip("# ")).replace(" ", "-")


def _resolve(dotted):
    parts = dotted.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for name in parts[i:]:
            found = getattr(found, name)
        return found
    raise AssertionError(dotted)


EQUATIONS = (ROOT / "docs/reference/equations.md").read_text()
EQUATION_ROWS = re.findall(r"^\| \((\d+)\) \|.*\| `([^`]+)` \| `([^`]+)` \|$", EQUATIONS, re.M)


@pytest.mark.parametrize(("number", "function", "test"), EQUATION_ROWS)
def test_equations_point_at_something(number, function, test):
    assert _resolve(function) is not None
    path, name = test.split("::")
    assert f"def {name}(" in (ROOT / path).read_text()


def test_cited_equations_are_mapped():
    mapped = {int(number) for number, _, _ in EQUATION_ROWS}
    for path in (ROOT / "src").rglob("*.py"):
        for number in re.findall(r"eq\. \((\d+)\)", path.read_text()):
            assert int(number) in mapped, f"{path} cites ({number})"


def _commands(made, *before):
    """Words of every command and subcommand below this parser."""
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield (*before, name)
                yield from _commands(command, *before, name)


@pytest.mark.parametrize("words", list(_commands(parser())), ids=" ".join)
def test_the_cli_page_holds_the_current_help(words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as stop:
        main([*words, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() in (ROOT / "docs/reference/cli.md").read_text()


def test_the_page_of_the_mesh_file_has_every_key_and_its_default():
    from domkl.mesh.config import keys, settings
    from domkl.mesh.protocol.events import Timing

    page = (ROOT / "docs/reference/mesh-toml.md").read_text()
    rows = dict(reversed(re.findall(r"^\| `(\w+)` \| `?([^|]*?)`? \|", page, re.M)))
    written = {keys.path_of(each).split(".")[-1] for each in keys.keys_of(settings.MeshConfig)}
    written |= {*Timing._fields, *settings.Member.__dataclass_fields__}
    written |= settings.Forecasting.__dataclass_fields__.keys()
    assert {"seed", "mode", "guard"} <= written
    written |= {"router", "inputs", "target", "model", "learners", "edges", "timing", "forecast"}
    written |= {"algorithm", "kernels", "parameters"}
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]*)`", page))))
    assert written <= named
    assert {key: float(rows[key]) for key in Timing._fields} == Timing()._asdict()
    plain = settings.MeshConfig.__dataclass_fields__
    for key in ("checkpoint_every", "queue", "seed", "delay"):
        assert int(rows[key]) == plain[key].default, key
    for key in ("name", "mode", "transport", "outside", "dtype"):
        assert rows[key].strip('"') == plain[key].default, key


def test_every_exit_code_has_a_paragraph():
    text = (ROOT / "docs/reference/exit-codes.md").read_text()
    for code in (0, 1, 2, 3, 4, 5, 6, 130):
        assert f"## {code}: " in text


def test_the_page_of_licences_is_current():
    """What is installed with all extras; no licence that demands the same of its users."""
    module = _loaded(ROOT / "tools/licences.py")
    page = module.PAGE.read_text()
    assert module.page(page) == page, "run python tools/licences.py --write"
    assert "not stated" not in page
    assert not re.search(r"\bA?L?GPL", page)


def test_the_versions_agree():
    import domkl

    assert f"version: {domkl.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("name", ["reproduce", "stations"])
def test_a_report_is_made_from_its_json(name):
    """Every number in it comes from the JSON of that run, a full one with all data sets."""
    document = json.loads((ROOT / f"docs/explanation/{name}.json").read_text())
    page = (ROOT / f"docs/explanation/{name}.md").read_text()
    assert as_markdown(document, f"../images/{name}") == page
    for figure in figures_of(document):
        assert (ROOT / f"docs/images/{name}/{figure['id']}.png").exists()
    assert document["trials"] == PARTS[document["part"]].trials
    assert document["missing"] == {}


def _loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_section_that_was_made_later_says_so():
    whole = json.loads((ROOT / "docs/explanation/reproduce.json").read_text())
    later = json.loads((ROOT / "docs/explanation/which-learner.json").read_text())
    made = _loaded(ROOT / "docs/from_report.py").with_section(whole, later)
    assert [each["id"] for each in made["sections"]] == [each["id"] for each in whole["sections"]]
    assert made["sections"][:-1] == whole["sections"][:-1]
    assert made["sections"][-1]["text"][0].startswith("Made later than the rest, by domkl")
    assert made["sections"][-1] == whole["sections"][-1]


def test_the_table_of_learners_is_made_from_its_json():
    module = _loaded(ROOT / "docs/from_report.py")
    document = json.loads((ROOT / "docs/explanation/which-learner.json").read_text())
    page = (ROOT / "docs/explanation/which-learner.md").read_text()
    assert module.which_learner(document, page) == page
    assert document["missing"] == {}


def test_the_tables_of_parts_and_constants_are_made_from_their_json():
    module = _loaded(ROOT / "docs/from_report.py")
    document = json.loads((ROOT / "docs/explanation/ablation.json").read_text())
    page = (ROOT / "docs/explanation/domkrls.md").read_text()
    assert module.ablation(document, page) == page
    assert document["missing"] == {}


def test_no_registry_address():
    words = ("index-url", "find-links", "trusted-host", "registry" + "=")
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run"):
        assert not any(word in (ROOT / name).read_text() for word in words)


def _section(page, heading):
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_protocol_page_agrees_with_the_code():
    import schedules

    from domkl.mesh.protocol import edges, families, wire
    from domkl.mesh.protocol.events import Timing

    page = (ROOT / "docs/explanation/mesh-protocol.md").read_text()
    frames = _section(page, "Frames")
    sizes = [int(n) for n in re.findall(r"^\| [a-z_ ]+ \| (\d+) \|", frames, re.MULTILINE)]
    assert sum(sizes) == wire.HEADER.size
    kinds = re.findall(r"^\| ([A-Z]+) \| (\d) \|", frames, re.MULTILINE)
    assert kinds == [(kind.name, str(kind.value)) for kind in wire.Kind]
    for number in (wire.VERSION, wire.MAX_NAME, wire.MAX_TEXT, wire.OPEN, wire.IDLE, wire.HASTE):
        assert re.search(rf"\b{number}\b", frames)
    assert (wire.MAX_SIZE, families.Family.limits) == (1e6, {"loss": 1e15})  # as written there
    assert f"number of neighbors ({wire.DEGREE.size} bytes)" in frames
    assert f"at most {edges.MAX_TOLD} different things" in page
    source = (ROOT / "src/domkl/mesh/protocol/edges.py").read_text()
    refused = frames.split("by neighbor and reason")[1]
    reasons = re.findall(r"^\| ([a-z]+) \| [^|]+\|$", refused, re.MULTILINE)
    assert len(reasons) == 8
    assert all(f'"{reason}"' in source for reason in reasons)
    times = re.findall(r"^\| ([a-z_]+) \| ([\d.]+) \|", _section(page, "Time"), re.MULTILINE)
    assert {name: float(value) for name, value in times} == Timing()._asdict()
    assert (schedules.MAX_DUAL_SUM, schedules.MAX_SPREAD) == (1e-9, 1.0)  # as promised there


def test_it_is_installed_from_a_clone_or_a_wheel():
    """The package is on no registry, so no page may say `pip install domkl`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wheel = f"./domkl-{domkl.__version__}-py3-none-any.whl"
    n_found = 0
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for line in re.findall(
            r"pip install[^`\n]*", page.read_text().replace("install\n", "install ")
        ):
            assert not re.search(r"install ('|\")?domkl", line), (page, line)
            for place, extras in re.findall(r"'([^'\[]+)\[([a-z,0-9]+)\]'", line):
                n_found += 1
                assert place in (".", wheel), (page, line)
                known = project["optional-dependencies"]
                assert set(extras.split(",")) <= set(known), (page, line)
    assert n_found >= 6
