"""The wire: what one side sends the other gets; what is no frame is an error, never a hang or a crash."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.verifier.contestant import encoding, wire
from tests.referee.garbage import broken

Pair = tuple[socket.socket, socket.socket]
scalars = (
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
)
plain = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)
keys = st.booleans() | st.integers() | st.text()
values = st.recursive(
    scalars | st.sampled_from([torch.float16, torch.int64, torch.bool]),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner),
    max_leaves=20,
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@given(st.dictionaries(st.text(), plain, max_size=3))
def test_messages_arrive_as_they_were_sent(message: dict[str, Any]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.send(ours, message)
        assert wire.receive(theirs) == (message, [])


@given(values)
def test_encoded_values_come_back_with_their_types(value: Any) -> None:
    encoded = json.loads(json.dumps(encoding.encode(value, lambda _: {}), allow_nan=False))
    back = encoding.decode(encoded, lambda _: None)
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_special_floats_travel(value: float) -> None:
    assert repr(encoding.decode(encoding.encode(value, lambda _: {}), lambda _: None)) == repr(value)


def test_tensors_travel_as_their_specs() -> None:
    tensors = [torch.zeros(2), torch.ones(3)]
    encoded = encoding.encode(({"a": tensors[0]}, [tensors[1]]), lambda t: {"numel": t.numel()})
    assert encoding.decode(encoded, lambda spec: spec["numel"]) == ({"a": 2}, [3])


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", torch.nn.ReLU()])
def test_other_values_cannot_be_handed_over(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be handed"):
        encoding.encode([value], lambda _: {})


@pytest.mark.parametrize(
    "value",
    [
        {"$tuple": 5},
        {"$dict": [[1]]},
        {"$dict": [[[1], 2]]},
        {"$float": "x"},
        {"$dtype": "Tensor"},
        {"$dtype": 7},
        {"$other": 1},
        {"a": 1, "b": 2},
        {},
    ],
)
def test_what_encode_never_made_is_refused(value: object) -> None:
    with pytest.raises(wire.WireError):
        encoding.decode(value, lambda _: None)


@given(broken.filter(lambda piece: len(piece) < 60_000))
def test_what_is_no_frame_is_an_error_and_nothing_else(piece: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(piece)
        ours.close()
        theirs.settimeout(30)
        with pytest.raises(wire.WireError):
            while True:
                message, fds = wire.receive(theirs)
                assert isinstance(message, dict)
                assert fds == []


@pytest.mark.parametrize("opening", [b'{"a":', b"["])
def test_deep_nesting_is_refused_before_anything_recurses(opening: bytes) -> None:
    closing = {b'{"a":': b"}", b"[": b"]"}[opening]
    for depth in (wire.MAX_DEPTH + 1, 900, 100_000):
        body = b'{"x":' + opening * depth + b"1" + closing * depth + b"}"
        with pytest.raises(wire.WireError):
            wire.parse(body)
    assert wire.parse(b'{"x":' + b"[" * 10 + b"]" * 10 + b"}")


def test_silence_times_out_and_half_a_frame_does_too(pair: Pair) -> None:
    ours, theirs = pair
    theirs.settimeout(0.05)
    for piece in (b"", b"\0\0", b"\0\0\0\x09{"):
        ours.sendall(piece)
        with pytest.raises(TimeoutError):
            wire.receive(theirs)


def test_a_clean_end_is_told_from_a_broken_one(pair: Pair) -> None:
    ours, theirs = pair
    wire.send(ours, {"last": True})
    ours.close()
    assert wire.receive(theirs)[0] == {"last": True}
    with pytest.raises(wire.WireClosed):
        wire.receive(theirs)


def test_a_frame_too_long_is_neither_sent_nor_taken(pair: Pair) -> None:
    ours, theirs = pair
    with pytest.raises(wire.WireError, match="exceeds"):
        wire.send(ours, {"text": "x" * wire.MAX_FRAME})
    ours.sendall(struct.pack(">I", wire.MAX_FRAME + 1))
    with pytest.raises(wire.WireError, match="claims"):
        wire.receive(theirs)


def test_not_a_number_is_not_sent(pair: Pair) -> None:
    with pytest.raises(ValueError, match="JSON"):
        wire.send(pair[0], {"value": float("nan")})


def test_descriptors_arrive_where_asked_for_and_nowhere_else(pair: Pair) -> None:
    ours, theirs = pair
    read, write = os.pipe()
    try:
        wire.send(ours, {"n": 1}, [write])
        message, (got,) = wire.receive(theirs, max_fds=2)
        assert message == {"n": 1}
        os.write(got, b"through")
        os.close(got)
        assert os.read(read, 10) == b"through"
        before = set(Path("/proc/self/fd").iterdir())
        wire.send(ours, {"n": 2}, [write])
        assert wire.receive(theirs) == ({"n": 2}, [])
        assert set(Path("/proc/self/fd").iterdir()) == before
    finally:
        os.close(read)
        os.close(write)
