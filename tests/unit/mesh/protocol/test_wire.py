"""The wire format: any bytes either decode or raise WireError."""

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import domkl
from domkl.errors import WireError
from domkl.mesh.protocol import wire
from domkl.mesh.protocol.bounds import radius_of
from domkl.mesh.protocol.wire import Frame, Kind, decode, encode

LIMIT = 500
NUMBER = st.integers(0, 2**64 - 1)
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=15)
FRAME = st.builds(
    Frame,
    kind=st.sampled_from(Kind),
    fingerprint=st.binary(min_size=16, max_size=16),
    sender=NAME,
    from_epoch=NUMBER,
    to_epoch=NUMBER,
    round=NUMBER,
    flags=st.integers(0, 255),
    payload=st.binary(max_size=LIMIT),
)
HELLO = Frame(Kind.HELLO, bytes(16), "a", 1, 2, 3, wire.OPEN, b"{}")


def same(one, other):
    return one._replace(payload=bytes(one.payload)) == other._replace(payload=bytes(other.payload))


@given(FRAME)
def test_what_is_encoded_decodes(frame):
    assert same(decode(encode(frame), LIMIT), frame)


def decodes_or_raises(data):
    try:
        frame = decode(data, LIMIT)
    except WireError:
        return
    assert encode(frame) == data  # no two spellings of a frame


@given(st.binary(max_size=200))
@example(b"")
@example(b"dk\x01\x01" + bytes(200))
def test_any_bytes_decode_or_raise(data):
    decodes_or_raises(data)


@given(FRAME, st.data())
def test_a_mutated_frame_decodes_or_raises(frame, data):
    written = bytearray(encode(frame))
    for _ in range(data.draw(st.integers(1, 4))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    decodes_or_raises(bytes(written))


@given(FRAME, st.data())
def test_a_frame_too_short_or_too_long_is_refused(frame, data):
    written = encode(frame)
    with pytest.raises(WireError):
        decode(written[: data.draw(st.integers(0, len(written) - 1))], LIMIT)
    with pytest.raises(WireError, match="as long as it says"):
        decode(written + data.draw(st.binary(min_size=1, max_size=9)), LIMIT)


@pytest.mark.parametrize(
    ("at", "byte", "text"),
    [
        (0, ord("x"), f"version {wire.VERSION}"),
        (2, 1, f"of version {wire.VERSION}, got b'dk', version 1"),
        (2, 3, f"of version {wire.VERSION}, got b'dk', version 3"),  # that of 0.5
        (3, 0, "kind"),
        (3, 7, "kind"),
    ],
)
def test_the_refusal_says_why(at, byte, text):
    written = bytearray(encode(HELLO))
    written[at] = byte
    with pytest.raises(WireError, match=text):
        decode(bytes(written), LIMIT)


def test_limits():
    assert decode(encode(HELLO._replace(payload=bytes(wire.MAX_TEXT))), 0).kind is Kind.HELLO
    with pytest.raises(WireError, match=str(wire.MAX_TEXT)):
        decode(encode(HELLO._replace(payload=bytes(wire.MAX_TEXT + 1))), 10**9)
    offer = HELLO._replace(kind=Kind.OFFER, payload=bytes(LIMIT))
    assert len(decode(encode(offer), LIMIT).payload) == LIMIT
    with pytest.raises(WireError, match="at most 499"):
        decode(encode(offer), LIMIT - 1)
    for name in ("", "n" * (wire.MAX_NAME + 1)):
        with pytest.raises(WireError, match="name"):
            decode(encode(HELLO._replace(sender=name)), LIMIT)
    broken = encode(HELLO._replace(sender="aa")).replace(b"aa", b"\xff\xff")
    with pytest.raises(WireError, match="UTF-8"):
        decode(broken, LIMIT)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=5))
def test_parts_come_back_fit_for_a_log(parts):
    found = wire.decode_parts(wire.encode_parts(parts))
    assert found == {wire.printable(k): wire.printable(v) for k, v in parts.items()}
    assert all(text.isprintable() for pair in found.items() for text in pair)


@given(st.binary(max_size=300))
@example(b"[" * 16_000)
@example(b"1" * 16_000)
@example(b'{"a": 1}')
@example(b"[]")
@example(b"\xff\xfe\x00")
@example(b'"\\ud800"')
def test_any_parts_decode_or_raise(payload):
    try:
        found = wire.decode_parts(payload)
    except WireError:
        return
    assert all(isinstance(text, str) for pair in found.items() for text in pair)


def test_long_and_garbling_texts_are_cut():
    long = wire.decode_parts(json.dumps({"n" * 99: "v" * 999, "a\n": "\x1b[2J\ud800"}).encode())
    assert long == {"n" * 60: "v" * 200, "a?": "?[2J?"}
    assert len(json.loads(wire.encode_parts({"a": "v" * 999}))["a"]) == 200
    assert wire.decode_text(b"\xff\nok" + b"x" * 9999).startswith("\ufffd?ok")
    assert len(wire.decode_text(b"x" * 9999)) == 500


CODES = bytes([100, 255])  # of the radii of two kernels


def message(model, n_neighbors=2, seed=0):
    """A message of a learner that has learned something."""
    learner = model.learner()
    learner.rewire([], [str(i) for i in range(n_neighbors)])
    x = np.random.default_rng(seed).random(2)
    return model.offers(), learner.local_step(*learner.look(x), np.array([0.7])).said


def frame_of(payload, flags=0):
    return Frame(Kind.OFFER, bytes(16), "a", 1, 1, 1, flags, payload)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_offer_is_read_to_the_bit(model_of, dtype):
    offers, said = message(model_of(dtype=dtype))
    payload = offers.pack(said, 1, 5, CODES)
    n_words = 8 + 2 * 6 * (8 if dtype == "float64" else 4) + 2 * 8
    assert len(payload) == offers.n_bytes == n_words + len(CODES)
    offer = offers.heard(frame_of(memoryview(b"x" + payload)[1:], wire.IDLE))
    assert offer.degree == 5
    assert offer.is_idle
    assert not offers.is_by_edge
    np.testing.assert_array_equal(offer.radii, radius_of(np.frombuffer(CODES, np.uint8)))
    assert offers.repack(offer) == payload
    for field in said._fields:
        assert offer.fields[field].dtype == getattr(said, field).dtype
        np.testing.assert_array_equal(offer.fields[field], getattr(said, field))


def test_each_neighbor_hears_its_own_row(model_of):
    offers, said = message(model_of(domkl.DOMKL(weights="message-passing")), n_neighbors=3)
    assert offers.is_by_edge
    said = said._replace(loss=np.arange(6.0).reshape(3, 2))
    for edge in range(3):
        offer = offers.heard(frame_of(offers.pack(said, edge, 3, CODES)))
        np.testing.assert_array_equal(offer.fields["loss"], said.loss[[edge]])
        np.testing.assert_array_equal(offer.fields["theta"], said.theta)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("theta", v) for v in (math.nan, math.inf, -math.inf, 1.1e6, -1.1e6, 3e38)),
        *(("loss", v) for v in (math.nan, -math.inf, 2e15, -2e15, 1e300)),
    ],
)
def test_numbers_that_make_no_sense_are_refused(model_of, dtype, field, value):
    offers, said = message(model_of(dtype=dtype))
    row = getattr(said, field).copy()
    row.flat[row.size // 2] = value
    payload = offers.pack(said._replace(**{field: row}), 0, 1, CODES)
    with pytest.raises(WireError, match=f"{field} must be finite"):
        offers.heard(frame_of(payload))


def test_an_offer_of_another_size_is_refused(model_of):
    offers, said = message(model_of())
    payload = offers.pack(said, 0, 1, CODES)
    for wrong in (b"", payload[:-1], payload + b"\0"):
        with pytest.raises(WireError, match=f"must have {offers.n_bytes} bytes"):
            offers.heard(frame_of(wrong))


@pytest.fixture(scope="module")
def offers(model_of):
    return message(model_of())[0]


@given(st.data())
def test_any_payload_is_read_as_sense_or_refused(offers, data):
    words = data.draw(st.lists(st.floats(width=64), min_size=14, max_size=14))
    codes = data.draw(st.binary(min_size=len(CODES), max_size=len(CODES)))
    payload = struct.pack("<Q14d", data.draw(NUMBER), *words) + codes
    assert len(payload) == offers.n_bytes
    try:
        offer = offers.heard(frame_of(payload))
    except WireError:
        return
    assert np.abs(offer.fields["theta"]).max() <= wire.MAX_SIZE
    assert np.abs(offer.fields["loss"]).max() <= 1e15
    assert (offer.radii >= 0).all()
