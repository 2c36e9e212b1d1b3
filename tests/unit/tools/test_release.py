"""A release puts six files in step, or changes nothing; it sets no tag."""

import importlib.util
import subprocess
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SPEC = importlib.util.spec_from_file_location("release", ROOT / "tools/release.py")
release = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(release)

TEXTS = {
    release.MODULE: '"""Words."""\n\n__version__ = "0.2.0"\n',
    release.CITATION: "title: x\nversion: 0.2.0\ndate-released: 2026-11-16\nlicense: y\n",
    release.CHANGELOG: "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.2.0]\n",
    release.DEVICES: "pip install './domkl-0.2.0-py3-none-any.whl[mesh]'\n",
}
WORDS = ["0.3.0", "--date", "2026-11-17"]


def git(folder, *words):
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "a")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@b")
    for name, text in TEXTS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "-m", "begin")
    return tmp_path


def write(root, version):
    (root / release.PARTS).write_text(version)
    (root / release.LOCK).write_text("numpy==2.0\n")


def test_all_files_are_in_step_and_there_is_no_tag(tree, capsys):
    assert release.main(WORDS, tree, write) == 0
    made = {name: (tree / name).read_text() for name in TEXTS}
    assert '__version__ = "0.3.0"' in made[release.MODULE]
    assert "version: 0.3.0\ndate-released: 2026-11-17\n" in made[release.CITATION]
    begin = "# Changelog\n\n## [Unreleased]\n\n## [0.3.0] - 2026-11-17\n\n### Added\n\n- A thing.\n"
    assert made[release.CHANGELOG].startswith(begin)
    assert "./domkl-0.3.0-py3-none-any.whl[mesh]" in made[release.DEVICES]
    assert (tree / release.PARTS).read_text() == "0.3.0"
    assert git(tree, "tag") == ""
    assert "git tag -a v0.3.0" in capsys.readouterr().out
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "log", "-1", "--format=%s").strip() == "release: 0.3.0"


def test_lists_that_cannot_be_written_change_nothing(tree, capsys):
    def fail(root, version):
        raise OSError("there is no index")

    assert release.main(WORDS, tree, fail) == 2
    assert "there is no index; nothing is committed" in capsys.readouterr().err
    assert {name: (tree / name).read_text() for name in TEXTS} == TEXTS
    assert git(tree, "log", "-1", "--format=%s").strip() == "begin"


def test_a_dry_run_changes_nothing(tree, capsys):
    assert release.main([*WORDS, "--dry-run"], tree) == 0
    assert capsys.readouterr().out.startswith("0.2.0 -> 0.3.0, 2026-11-17: ")
    assert {name: (tree / name).read_text() for name in TEXTS} == TEXTS
    assert git(tree, "tag") == ""


@pytest.mark.parametrize(
    ("version", "why"),
    [("0.2.0", "must be above 0.2.0, got 0.2.0"), ("0.3", "must have the form 1.2.3, got '0.3'")],
)
def test_a_wrong_version_is_refused(tree, capsys, version, why):
    assert release.main([version], tree) == 2
    assert why in capsys.readouterr().err


def test_a_changed_tree_and_an_old_tag_are_refused(tree, capsys):
    git(tree, "tag", "v0.3.0")
    assert release.main(WORDS, tree) == 2
    assert "the tag v0.3.0 must be new" in capsys.readouterr().err
    (tree / "stray").write_text("x")
    assert release.main(WORDS, tree) == 2
    assert "the tree must have no changes, got ?? stray" in capsys.readouterr().err


def test_files_that_are_not_in_step_are_refused():
    day = date(2026, 11, 17)
    behind = {**TEXTS, release.CITATION: "version: 0.1.0\n"}
    with pytest.raises(release.ReleaseError, match=r"must have version 0\.2\.0"):
        release.released(behind, "0.3.0", day)
    behind = {**TEXTS, release.DEVICES: "./domkl-0.1.0-py3-none-any.whl"}
    with pytest.raises(release.ReleaseError, match=r"must name domkl-0\.2\.0-py3-none-any\.whl"):
        release.released(behind, "0.3.0", day)
    empty = {**TEXTS, release.CHANGELOG: "## [Unreleased]\n\n## [0.2.0]\n\n- A thing.\n"}
    with pytest.raises(release.ReleaseError, match="must have entries under Unreleased"):
        release.released(empty, "0.3.0", day)


def test_the_files_of_this_tree_could_be_released():
    texts = {name: (ROOT / name).read_text() for name in TEXTS}
    news = f"{release.UNRELEASED}\n- Something to tell.\n"  # after a release there is nothing
    texts[release.CHANGELOG] = texts[release.CHANGELOG].replace(release.UNRELEASED, news, 1)
    made = release.released(texts, "99.0.0", date(2026, 11, 17))
    assert "## [99.0.0] - 2026-11-17" in made[release.CHANGELOG]
    assert "domkl-99.0.0-py3-none-any.whl" in made[release.DEVICES]
