"""The wire format: frames to bytes and back.

The format has a version and limits on every length. Any bytes either decode or raise WireError.

A frame is a header, the sender's name and a payload, little-endian throughout:

    magic "dk" | version | kind | fingerprint (16) | from_epoch | to_epoch | round | flags |
    length of the name | length of the payload | name | zeros to a multiple of 8 | payload

``from_epoch`` is the sender's number for this edge, and ``to_epoch`` the receiver's as the sender
knows it; both together are the edge's epoch. The payload depends on the kind:

    HELLO   greets: the parts of the sender's model as JSON
    OFFER   the sender's number of neighbors, what it said (`domkl.speech`), and its radii in a
            byte each (bounds.py)
    ASK     asks for offer ``round`` again; no payload
    ALIVE   a sign of life; no payload
    REFUSE  says why the sender refuses to exchange, as text
    BYE     the sender leaves; no payload

Flags of a HELLO: bit 0 (`OPEN`), the sender's end of the edge is open. Flags of an OFFER: bit 1
(`IDLE`), the sender had no sample; bits 4 to 7 (`HASTE`), the number of hops left over which
learners without a sample answer at once, because a learner has a backlog.
"""

import json
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from domkl.core.exchange import is_within
from domkl.errors import WireError
from domkl.mesh.protocol.bounds import code_of, radius_of
from domkl.mesh.protocol.families import Family
from domkl.speech.base import Fields, Layout
from domkl.text import from_json
from domkl.typing import Floats

MAGIC, VERSION = b"dk", 4
HEADER = struct.Struct("<2sBB16sQQQBBI")
#: longest payload of anything but an offer, whose length follows from the model
MAX_TEXT = 16_384
#: longest name, in bytes
MAX_NAME = 63
#: largest absolute value in an offer, unless the algorithm says otherwise; scaled functions are of
#: the order of 1
MAX_SIZE = 1e6
DEGREE = struct.Struct("<Q")
OPEN, IDLE = 1, 2  # flags
#: haste is stored in the flags as a multiple of HASTE; MOST_HASTE is the largest number of hops
HASTE, MOST_HASTE = 16, 15
#: padding after a name of n bytes, so that the payload is aligned to 8 bytes
PADS = [bytes(-(HEADER.size + n) % 8) for n in range(256)]


class Kind(IntEnum):
    """What a frame is for."""

    HELLO = 1
    OFFER = 2
    ASK = 3
    ALIVE = 4
    REFUSE = 5
    BYE = 6


KINDS = {int(kind): kind for kind in Kind}


class Frame(NamedTuple):
    """A decoded frame; its payload is not checked yet."""

    kind: Kind
    fingerprint: bytes
    sender: str
    from_epoch: int
    to_epoch: int
    round: int = 0
    flags: int = 0
    payload: bytes | memoryview = b""

    @property
    def epoch(self) -> tuple[int, int]:
        """The sender's number and the receiver's."""
        return self.from_epoch, self.to_epoch


def encode(frame: Frame) -> bytes:
    """Return a frame as bytes."""
    name = frame.sender.encode()
    numbers = frame.from_epoch, frame.to_epoch, frame.round, frame.flags
    lengths = len(name), len(frame.payload)
    head = HEADER.pack(MAGIC, VERSION, frame.kind, frame.fingerprint, *numbers, *lengths)
    return b"".join((head, name, PADS[len(name)], frame.payload))


def decode(data: bytes, max_payload: int) -> Frame:
    """Read what `encode` wrote; anything else raises WireError."""
    if len(data) < HEADER.size:
        raise WireError(f"frame must have at least {HEADER.size} bytes, got {len(data)}")
    magic, version, kind, fingerprint, *numbers, n_name, n_payload = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise WireError(f"frame must be of version {VERSION}, got {magic!r}, version {version}")
    if kind not in KINDS:
        raise WireError(f"kind must be known, got {kind}")
    kind = KINDS[kind]
    limit = max_payload if kind is Kind.OFFER else MAX_TEXT
    if n_payload > limit or not 0 < n_name <= MAX_NAME:
        raise WireError(f"payload must be at most {limit} bytes, got {n_payload}; name {n_name}")
    end, pad = HEADER.size + n_name, PADS[n_name]
    start = end + len(pad)
    if len(data) != start + n_payload or data[end:start] != pad:
        raise WireError(f"frame must be as long as it says, got {len(data)} bytes")
    try:
        sender = data[HEADER.size : end].decode()
    except UnicodeDecodeError:
        raise WireError("sender must be a name in UTF-8") from None
    from_epoch, to_epoch, round, flags = numbers
    payload = memoryview(data)[start:]
    return Frame(kind, fingerprint, sender, from_epoch, to_epoch, round, flags, payload)


def encode_parts(parts: Mapping[str, str]) -> bytes:
    """Return a model's parts as the payload of a HELLO, with long values cut."""
    return json.dumps({name: value[:200] for name, value in parts.items()}).encode()


def decode_parts(payload: bytes | memoryview) -> dict[str, str]:
    """Read a peer's parts; texts are cut, and control characters replaced, for the log."""
    try:
        found = from_json(bytes(payload))
    except ValueError:
        raise WireError("parts must be JSON") from None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise WireError("parts must be an object of texts")
    return {printable(name)[:60]: printable(value)[:200] for name, value in found.items()}


def decode_text(payload: bytes | memoryview) -> str:
    """Read a peer's text, cut and without control characters, for the log."""
    return printable(bytes(payload).decode(errors="replace"))[:500]


def printable(text: str) -> str:
    """Replace control characters by question marks."""
    return "".join(c if c.isprintable() else "?" for c in text)


class Offer(NamedTuple):
    """A message from one learner to one neighbor."""

    degree: int  # number of the sender's neighbors
    fields: Fields  # each with one row
    is_idle: bool = False  # the sender had no sample
    haste: int = 0  # hops left over which to answer at once
    radii: Floats = np.empty(0)  # how far the sender lets itself be moved, see bounds.py


class OfferFormat:
    """Offers as payloads: the sender's number of neighbors, then what it said.

    Parameters
    ----------
    layout : Layout
        Of what is said, as bytes.
    family : Family
        Its limits and rules are those of what is heard.
    """

    def __init__(self, layout: Layout, family: Family) -> None:
        self.layout, self._refusal = layout, family.refusal
        self.n_rows = layout.n_rows(family.moved)  # that have a radius each
        self.n_bytes = DEGREE.size + layout.n_bytes + self.n_rows
        self._limits = {field: family.limits.get(field, MAX_SIZE) for field in layout.fields}

    @property
    def is_by_edge(self) -> bool:
        """Whether each neighbor gets an offer of its own."""
        return self.layout.is_by_edge

    def pack(self, said: Any, edge: int, degree: int, codes: bytes) -> bytes:
        """Return the payload for the neighbor at this position among the open edges."""
        return DEGREE.pack(degree) + self.layout.encode(said, edge) + codes

    def unpack(self, payload: bytes | memoryview) -> Offer:
        """Read a payload without checking it; its arrays can be written, as the learner's own."""
        degree: int = DEGREE.unpack_from(payload)[0]
        end = self.n_bytes - self.n_rows
        fields = self.layout.decode(memoryview(bytearray(payload))[DEGREE.size : end])
        codes = np.frombuffer(payload, np.uint8, offset=end)
        return Offer(degree, fields, radii=radius_of(codes))

    def repack(self, offer: Offer) -> bytes:
        """Return the payload that `unpack` reads this offer from."""
        codes = code_of(offer.radii).tobytes()
        return DEGREE.pack(offer.degree) + self.layout.encode_fields(offer.fields) + codes

    def heard(self, frame: Frame) -> Offer:
        """Read a neighbor's offer; raise WireError if its size or a number is out of bounds."""
        if len(frame.payload) != self.n_bytes:
            raise WireError(f"offer must have {self.n_bytes} bytes, got {len(frame.payload)}")
        offer = self.unpack(frame.payload)
        for field, rows in offer.fields.items():
            if not is_within(rows.reshape(-1), self._limits[field]):
                limit, low, high = self._limits[field], rows.min(), rows.max()
                rule = f"finite and at most {limit:g} in size"
                raise WireError(f"{field} must be {rule}, got {low:.3g} .. {high:.3g}")
        reason = self._refusal(offer.fields)
        if reason is not None:
            raise WireError(reason)
        if frame.flags:
            return offer._replace(is_idle=bool(frame.flags & IDLE), haste=frame.flags // HASTE)
        return offer


def longest_frame(offers: OfferFormat) -> int:
    """Bytes of the longest frame with offers of this format, whatever the sender's name."""
    longest: int = max(offers.n_bytes, MAX_TEXT)
    return HEADER.size + MAX_NAME + max(map(len, PADS)) + longest
