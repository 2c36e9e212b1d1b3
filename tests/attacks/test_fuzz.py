"""Fuzzing with a fixed seed; `make fuzz` runs the same for longer. Findings have a test each."""

import logging

import fuzzing
import numpy as np
import pytest

#: executions of each target, about a second each
N = {"frames": 150, "log": 400, "checkpoint": 150, "mesh.toml": 1000, "JSON": 4000, "tables": 1200,
     "archive": 1000, "HTTP": 4000}  # fmt: skip


@pytest.fixture(scope="module")
def targets():
    logging.disable(logging.CRITICAL)
    yield fuzzing.targets()
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", N)
def test_nothing_that_is_read_ends_in_another_error(targets, name):
    found = fuzzing.Fuzzer(targets[name], seed=1).run(N[name])
    assert [each.error for each in found.findings.values()] == []
    assert len(found.lines) > 10


def test_runs_of_one_seed_are_equal(targets):
    first, second = (fuzzing.Fuzzer(targets["JSON"], seed=3).run(300) for _ in range(2))
    assert (first.lines, first.corpus) == (second.lines, second.corpus)


def test_a_finding_is_found_and_told_once():
    """An error that only certain bytes cause, of which each right one reaches another line."""

    def read(data):
        if data[:1] != b"x":
            return
        if data[1:2] != b"y":
            return
        if data[2:3] == b"z":
            raise IndexError("here")

    target = fuzzing.Target((b"aaa",), read, (__file__,))
    fuzzer = fuzzing.Fuzzer(target, seed=1).run(20_000)
    assert [key[0] for key in fuzzer.findings] == ["IndexError"]
    assert next(iter(fuzzer.findings.values())).data[:3] == b"xyz"
    assert any(each[:2] == b"xy" for each in fuzzer.corpus)


def test_every_target_reaches_its_readers(targets):
    """Valid bytes alone reach lines of the files that they are to be read by."""
    for target in targets.values():
        names = {name for name, _ in fuzzing.Fuzzer(target).lines}
        assert str(fuzzing.SOURCE / target.files[0]) in names


# what was found


def test_a_sample_of_the_log_has_a_number_from_1_on(targets):
    """Of number 0, the node did not start, whether a loss was accepted or not."""
    wal = fuzzing.wal
    frame = wal._frame(7, 0, [wal.Entry(np.zeros(2))])
    targets["log"].read(wal._head(7, 2, 1) + frame)


def test_a_digit_that_is_no_number_in_a_table(targets):
    """ValueError of int."""
    targets["tables"].read("a,b,load\n1,²,3".encode("latin-1"))


def test_a_manifest_that_lacks_a_key(targets):
    """KeyError, after the files were restored."""
    targets["archive"].read(fuzzing.an_archive().replace(b'"has_keys"', b'"has-keys"'))


def test_a_number_of_400_digits_in_a_table(targets):
    """It was infinite, and given to the learner."""
    targets["tables"].read(b"a,load\n1,2\n3," + 400 * b"9" + b"\n3,4\n")
    targets["tables"].read(b"a,load\n1,2\n3,4\n3," + 400 * b"9" + b"\n3,4\n")


def test_a_checkpoint_that_predicts_1e160(targets):
    """OverflowError at the next sample; the square of such an error is infinite."""
    parts = fuzzing.unpack("checkpoint", targets["checkpoint"].seeds[0])
    large = {name: np.full_like(v, 1e160) for name, v in parts.arrays.items() if "theta" in name}
    assert large
    arrays = {**parts.arrays, **large}
    targets["checkpoint"].read(fuzzing.pack("checkpoint", fuzzing.Parts(parts.header, arrays)))
