"""The documents are true: their code runs, their rows point at something, their help is current."""

import argparse
import importlib
import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from domkl.cli.main import main, parser
from domkl.experiments.reproduce.page import as_markdown, figures_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_python_blocks_run(page, capsys, tmp_path, monkeypatch):
    text = page.read_text()
    for name, content in re.findall(r"```python file=(\S+)\n(.*?)```", text, re.S):
        (tmp_path / name).write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "__main__"})


@pytest.mark.slow
def test_the_example_prints_what_its_comment_says(capsys, tmp_path, monkeypatch):
    test_python_blocks_run(ROOT / "README.md", capsys, tmp_path, monkeypatch)
    first = capsys.readouterr().out.splitlines()[0]
    pattern = re.escape("Run(649 rounds, mse=0.0..., cv=0.00...)").replace(r"\.\.\.", r"\d+")
    assert re.fullmatch(pattern, first)


def test_the_user_algorithm_is_fifty_lines():
    text = (ROOT / "docs/own-algorithm.md").read_text()
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
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


@pytest.mark.slow
def test_the_sweep_of_the_readme_runs(tmp_path, capsys):
    text = (ROOT / "README.md").read_text()
    (command,) = re.findall(r"^domkl (sweep .*)$", text, re.M)
    words = [str(ROOT / word) if word.endswith(".toml") else word for word in command.split()]
    assert main([*words, "--workers", "1", "--out", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 2 * 2 * 6
    block = re.search(r"```toml\n(.*?)```", (ROOT / "docs/sweeps.md").read_text(), re.S)
    assert block[1] == (ROOT / "docs/rho.toml").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_placeholder_is_left(page):
    assert not re.search(r"@[A-Z_]+@|TODO|TBD", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not link.startswith("https://"):
            assert (page.parent / link).exists(), link


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


EQUATIONS = (ROOT / "docs/equations.md").read_text()
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
    assert capsys.readouterr().out.strip() in (ROOT / "docs/cli.md").read_text()


def test_every_exit_code_has_a_paragraph():
    text = (ROOT / "docs/exit-codes.md").read_text()
    for code in (0, 1, 2, 3, 4, 5, 6, 130):
        assert f"## {code}: " in text


def test_the_versions_agree():
    import domkl

    assert f"version: {domkl.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_reproduction_page_is_made_from_its_json():
    """Every number in it comes from the JSON of that run."""
    document = json.loads((ROOT / "docs/reproduce.json").read_text())
    page = (ROOT / "docs/reproduce.md").read_text()
    assert as_markdown(document, "images/reproduce") == page
    for figure in figures_of(document):
        assert (ROOT / f"docs/images/reproduce/{figure['id']}.png").exists()
    assert document["trials"] == 500
    assert document["missing"] == {}


def _from_report():
    spec = importlib.util.spec_from_file_location("from_report", ROOT / "docs/from_report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_section_that_was_made_later_says_so():
    whole = json.loads((ROOT / "docs/reproduce.json").read_text())
    later = json.loads((ROOT / "docs/which-learner.json").read_text())
    made = _from_report().with_section(whole, later)
    assert [each["id"] for each in made["sections"]] == [each["id"] for each in whole["sections"]]
    assert made["sections"][:-1] == whole["sections"][:-1]
    assert made["sections"][-1]["text"][0].startswith("Made later than the rest, by domkl")
    assert made["sections"][-1] == whole["sections"][-1]


def test_the_table_of_learners_is_made_from_its_json():
    module = _from_report()
    document = json.loads((ROOT / "docs/which-learner.json").read_text())
    page = (ROOT / "docs/which-learner.md").read_text()
    assert module.which_learner(document, page) == page
    assert document["missing"] == {}


def test_no_registry_address():
    words = ("index-url", "find-links", "trusted-host", "registry" + "=")
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run"):
        assert not any(word in (ROOT / name).read_text() for word in words)


def _section(page, heading):
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_protocol_page_agrees_with_the_code():
    from domkl.algorithms.base import Algorithm
    from domkl.mesh.protocol import edges, wire
    from domkl.mesh.protocol.events import Timing
    from domkl.mesh.testing import schedules

    page = (ROOT / "docs" / "mesh-protocol.md").read_text()
    frames = _section(page, "Frames")
    sizes = [int(n) for n in re.findall(r"^\| [a-z_ ]+ \| (\d+) \|", frames, re.MULTILINE)]
    assert sum(sizes) == wire.HEADER.size
    kinds = re.findall(r"^\| ([A-Z]+) \| (\d) \|", frames, re.MULTILINE)
    assert kinds == [(kind.name, str(kind.value)) for kind in wire.Kind]
    for number in (wire.VERSION, wire.MAX_NAME, wire.MAX_TEXT, wire.OPEN, wire.IDLE, wire.HASTE):
        assert re.search(rf"\b{number}\b", frames)
    assert (wire.MAX_SIZE, Algorithm.largest) == (1e6, {"loss": 1e15})  # as written there
    assert f"number of neighbors ({wire.DEGREE.size} bytes)" in frames
    assert f"at most {edges.MAX_TOLD} different things" in page
    source = (ROOT / "src/domkl/mesh/protocol/edges.py").read_text()
    refused = frames.split("by neighbor and reason")[1]
    reasons = re.findall(r"^\| ([a-z]+) \| [^|]+\|$", refused, re.MULTILINE)
    assert len(reasons) == 9
    assert all(f'"{reason}"' in source for reason in reasons)
    times = re.findall(r"^\| ([a-z_]+) \| ([\d.]+) \|", _section(page, "Time"), re.MULTILINE)
    assert {name: float(value) for name, value in times} == Timing()._asdict()
    assert (schedules.MAX_DUAL_SUM, schedules.MAX_SPREAD) == (1e-9, 1.0)  # as promised there
