"""One line per event, readable by people or machines; equal alarms do not fill the disk."""

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

from domkl.errors import ParameterError
from domkl.mesh import process_log as module
from domkl.mesh.config import certificates


@pytest.fixture
def written(tmp_path):
    def write(form):
        path = tmp_path / "logs" / f"{form}.log"
        with module.logging_to(form, "info", path):
            module.event("ready", name="north 1", rounds=3)
            module.event("noise", logging.DEBUG)
            logging.getLogger("domkl.mesh.other").warning("two\nlines %s", 1)
        module.event("after")
        return path.read_text().splitlines()

    return write


def test_json_lines(written):
    ready, other = (json.loads(line) for line in written("json"))
    assert ready.pop("time").endswith("+00:00")
    assert ready == {"level": "info", "event": "ready", "name": "north 1", "rounds": 3}
    assert other["from"] == "domkl.mesh.other"
    assert other["text"] == "two\nlines 1"


def test_text_lines(written):
    ready, other = written("text")
    assert ready.split(" ", 1)[1] == 'info ready name="north 1" rounds=3'
    assert other.endswith('text="two\\nlines 1"')


def test_what_strangers_send_does_not_move_the_cursor_of_a_terminal(tmp_path):
    with module.logging_to("text", "info", tmp_path / "log"):
        module.event("bad message", topic="\x1b[2J")
    assert (tmp_path / "log").read_text().endswith('topic="\\u001b[2J"\n')


def test_unknown_options_are_refused():
    with (
        pytest.raises(ParameterError, match="log format must be one of"),
        module.logging_to("xml", "info"),
    ):
        pass


def test_equal_alarms_are_counted_and_not_written():
    now = 0.0
    throttle = module.Throttle(lambda: now)
    assert throttle.admit("refused", "north") == 0
    assert [throttle.admit("refused", "north") for _ in range(5)] == [None] * 5
    assert throttle.admit("refused", "south") == 0
    now = 61.0
    assert throttle.admit("refused", "north") == 5
    for k in range(3000):
        throttle.admit("refused", str(k))
    assert len(throttle._seen) <= 1000


@pytest.mark.parametrize(("days", "said"), [(31, None), (29, "in 28 days"), (-1, "has expired")])
def test_an_alarm_comes_before_a_certificate_expires(days, said):
    now = datetime(2030, 1, 2, tzinfo=UTC)
    text = module.expiry_alarm(now + timedelta(days=days) - timedelta(hours=1), now)
    assert text is None if said is None else said in text


def test_a_key_that_others_may_read_is_told(tmp_path):
    certificates.create_authority(tmp_path / "authority", "farm")
    certificates.issue(tmp_path / "authority", "barn", tmp_path / "barn")
    log = tmp_path / "log"

    def looked():
        log.unlink(missing_ok=True)
        with module.logging_to("json", "info", log):
            module.CertificateWatch(tmp_path / "barn" / "node.pem").look(0.0)
        return [json.loads(line)["text"] for line in log.read_text().splitlines()]

    assert looked() == []
    (tmp_path / "barn" / "node.key").chmod(0o640)
    assert [text.endswith("chmod go=") and "node.key" in text for text in looked()] == [True]


def test_lines_of_one_kind_are_limited_and_those_held_back_are_counted():
    """0.1 wrote 13,000 lines in 3 s when descriptors ran out, and one for each bad request."""
    gate, logger = module.FloodGate(3), logging.getLogger("uvicorn.error")

    def line(text, when):
        record = logger.makeRecord(logger.name, logging.WARNING, "", 0, text, (), None)
        record.created = when
        return gate.filter(record), record.held_back

    assert [line("bad request", 0.0)[0] for _ in range(10)] == [True] * 3 + [False] * 7
    assert line("another", 0.0) == (True, 0)
    assert line("bad request", 61.0) == (True, 7)
    assert line("bad request", 61.0) == (True, 0)
    for k in range(3000):
        line(str(k), 62.0)
    assert len(gate._throttle._seen) <= 1000
