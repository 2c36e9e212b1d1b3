"""The list of parts and the lock file: complete, and without a machine's or an index's address."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lock, parts = tool("lock"), tool("parts")
PINS = lock.pinned((ROOT / lock.CONSTRAINTS).read_text())


def report(*rows):
    return {
        "install": [
            {
                "metadata": {"name": name, "version": version},
                "download_info": {"archive_info": {"hashes": {"sha256": digest}}},
            }
            for name, version, digest in rows
        ]
    }


def test_a_lock_has_the_hashes_of_all_reports():
    pins = lock.pinned("# exact versions\nA_b.c==1.0\nd==2\n")
    first = report(("a-b-c", "1.0", "22"), ("D", "2", "33"))
    text = lock.locked(pins, [first, report(("A.B.C", "1.0", "11"))])
    assert text.removeprefix(lock.HEAD).splitlines() == [
        "a-b-c==1.0 \\",
        "    --hash=sha256:11 \\",
        "    --hash=sha256:22",
        "d==2 \\",
        "    --hash=sha256:33",
    ]


def test_another_version_and_a_package_without_hash_are_refused():
    with pytest.raises(ValueError, match="a must have version 1, got 2"):
        lock.locked({"a": "1"}, [report(("a", "2", "11"))])
    with pytest.raises(ValueError, match="these have none: b"):
        lock.locked({"a": "1", "b": "1"}, [report(("a", "1", "11"))])


def test_the_committed_lock_is_that_of_the_constraints():
    text = (ROOT / lock.LOCK).read_text()
    rows = [row.removesuffix(" \\") for row in text.splitlines() if row[:1] not in "# "]
    assert rows == [f"{name}=={version}" for name, version in sorted(PINS.items())]
    assert "://" not in text


def test_the_list_names_parts_licences_and_needs():
    made = parts.document("1.2.3")
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert made["metadata"]["component"]["purl"] == "pkg:pypi/domkl@1.2.3"
    refs = {each["bom-ref"] for each in made["components"]}
    names = {each["name"].lower() for each in made["components"]}
    assert {"numpy", "numba", "cryptography", "matplotlib"} <= names
    assert not {"pytest", "ruff", "mypy", "domkl"} & names
    needs = {each["ref"]: each["dependsOn"] for each in made["dependencies"]}
    assert set(needs) == refs | {"pkg:pypi/domkl@1.2.3"}
    assert all(set(below) <= refs for below in needs.values())
    (numba,) = (ref for ref in refs if ref.startswith("pkg:pypi/numba@"))
    assert any(ref.startswith("pkg:pypi/llvmlite@") for ref in needs[numba])
    assert all(each["licenses"] for each in made["components"])


def test_the_committed_list_has_the_versions_of_the_constraints():
    made = json.loads((ROOT / parts.PARTS).read_text())
    wrong = [
        each["purl"]
        for each in made["components"]
        if PINS.get(lock.normal(each["name"])) != each["version"]
    ]
    assert wrong == []
    assert "file:" not in json.dumps(made)
