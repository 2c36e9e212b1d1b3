"""The changelog says what a user must do, can do, and what was wrong, in few lines."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[3] / "CHANGELOG.md").read_text()
VERSIONS = re.split(r"^## ", TEXT, flags=re.M)[1:]
MOST = 40  # lines of a version


def test_a_version_has_at_most_forty_lines():
    lines = {each.split("\n")[0]: len(each.strip().splitlines()) for each in VERSIONS}
    assert {name: n for name, n in lines.items() if n > MOST} == {}
    assert len(lines) >= 3


def test_its_parts_are_what_a_user_asks():
    parts = {part for each in VERSIONS for part in re.findall(r"^### (.+)$", each, re.M)}
    assert parts <= {"You must", "You can", "Was wrong"}
