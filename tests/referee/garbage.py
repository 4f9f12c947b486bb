"""Malformed messages, for hypothesis: every kind of reply that the referee reads, bent in every way."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

INFINITE, NOT_A_NUMBER = "<1e999>", "<NaN>"
"""Stand for tokens that `json.dumps` does not write."""

LEAF = {
    "type": "Tensor",
    "dtype": "float32",
    "shape": [4, 3],
    "stride": [3, 1],
    "device": "cpu",
    "requires_grad": False,
}
ROW = ["operator", "aten.mm", 2, 0.5]
REPLIES: tuple[dict[str, Any], ...] = (
    {"ready": True, "pid": 17},
    {},
    {"state": {"linear.weight": ["float32", [3, 4]], "linear.bias": ["float32", [3]]}},
    {"missing": ["linear.weight"]},
    {"output": {"structure": "tensor", "leaves": [LEAF]}, "copied": True},
    {"output": {"structure": ["tuple", ["tensor", "tensor"]], "leaves": [LEAF, LEAF]}, "copied": True},
    {"copied": True},
    {"op": "places"},
    {"ms": [0.5, 0.25, 0.125]},
    {"profile": {"device": [ROW], "host": [ROW], "code": ["ext"], "trouble": ""}},
    {"error": {"kind": "exception", "type": "RuntimeError", "message": "no", "traceback": "line 1"}},
    {"op": "build", "request": {"name": "ext", "cpp_sources": ["int f();"], "functions": {"f": "f"}}},
    {
        "op": "build",
        "request": {
            "name": "ext",
            "cpp_sources": ["int f();"],
            "cuda_sources": ["__global__ void k() {}"],
            "files": {"own/folder1/unit0.cpp": "int g();", "own/g.h": ""},
            "units": ["own/folder1/unit0.cpp"],
            "functions": None,
            "extra_cflags": ["-O3"],
            "extra_cuda_cflags": ["-O3"],
            "extra_ldflags": ["-lm"],
            "extra_include_paths": ["/usr/include"],
            "with_cuda": True,
            "is_python_module": True,
            "with_pytorch_error_handling": True,
            "no_implicit_headers": False,
        },
    },
)

NUMBERS = [0, -1, True, 2**31, 2**64, -(2**63), 10**400, 1e308, -0.0, 5e-324, INFINITE, NOT_A_NUMBER]
TEXTS = ["", "tensor", "\ud800", "\x00", "\x1b[31mred", "\u202e", "../x", "x" * 70_000]


def _worse(value: Any) -> list[Any]:
    """Values of the same type, or nearly, that code may not expect."""
    if isinstance(value, bool) or value is None:
        return [None, 1, 0, "true", [], {}]
    if isinstance(value, int | float):
        return NUMBERS
    if isinstance(value, str):
        return TEXTS
    if isinstance(value, list):
        return [[], value * 300, [value], [None], {}, "list"]
    return [{}, [], {"": value}, value | {"\ud800": 1}, "dict"]


_scalars = (
    st.sampled_from([None, *NUMBERS, *TEXTS])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
)
values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
) | st.sampled_from([48, 62, 70, 900]).map(lambda depth: _nested(depth))
"""JSON values, some of them hostile."""


def _nested(depth: int) -> Any:
    value: Any = 0
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@dataclass(frozen=True)
class Change:
    """One change of a message: where, what, and the value that it takes."""

    path: tuple[int, ...]
    """The number of the key or item at each level, more than there may be levels."""
    depth: int
    """Levels to go down, at most."""
    what: str
    value: Any
    pick: int

    def of(self, item: Any, level: int = 0) -> Any:
        """A copy of a dict or list with the change in it."""
        keys = list(item) if isinstance(item, dict) else list(range(len(item)))
        if not keys:
            return self.value
        key = keys[self.path[level] % len(keys)]
        copied = dict(item) if isinstance(item, dict) else list(item)
        if isinstance(item[key], dict | list) and item[key] and level < self.depth:
            copied[key] = self.of(item[key], level + 1)
        elif self.what == "replace":
            copied[key] = self.value
        elif self.what == "exaggerate":
            worse = _worse(item[key])
            copied[key] = worse[self.pick % len(worse)]
        elif self.what == "remove":
            del copied[key]
        elif isinstance(copied, dict):
            copied[f"{key}+"] = self.value
        else:
            copied.append(copied[key])
        return copied


changes = st.lists(
    st.builds(
        Change,
        st.tuples(*[st.integers(0, 11)] * 8),
        st.integers(0, 7),
        st.sampled_from(["exaggerate", "exaggerate", "exaggerate", "replace", "remove", "add"]),
        values,
        st.integers(0, 1000),
    ),
    min_size=1,
    max_size=2,
)


def bent(message: dict[str, Any], some: list[Change]) -> dict[str, Any]:
    """The message with the changes made."""
    whole: Any = message
    for change in some:
        whole = change.of(whole) if isinstance(whole, dict | list) else whole
    return whole if isinstance(whole, dict) else {"message": whole}


_RICH = tuple(reply for reply in REPLIES if "profile" in reply or "output" in reply)
messages = st.builds(bent, st.sampled_from(REPLIES) | st.sampled_from(_RICH), changes)
"""Objects that are like a reply and are none."""


def encoded(message: dict[str, Any]) -> bytes:
    """A frame's body, with the tokens that JSON has not."""
    text = json.dumps(message)
    for token in (INFINITE, NOT_A_NUMBER):
        text = text.replace(json.dumps(token), token.strip("<>"))
    return text.encode()


def frame(body: bytes) -> bytes:
    """The body as it is sent."""
    return struct.pack(">I", len(body)) + body


_bodies = messages.map(encoded)
broken = (
    st.binary(max_size=64)
    | st.builds(lambda body, cut: frame(body)[: cut % (len(body) + 4)], _bodies, st.integers(0, 1 << 16))
    | st.builds(lambda body, length: struct.pack(">I", length) + body, _bodies, st.integers(0, 2**32 - 1))
    | st.binary(max_size=64).map(frame)
    | st.sampled_from(
        [b"[]", b"1", b'"x"', b"null", b"{", b"", b"\xff\xfe", b'{"a":NaN}', b'{"a":1}{"b":2}']
    ).map(frame)
    | st.sampled_from([b"[" * 100_000, b'{"a":' * 100_000, b"[" * 65 + b"]" * 65]).map(frame)
    | st.builds(
        lambda body, at, bits: frame(_flipped(body, at, bits)), _bodies, st.integers(0), st.integers(1, 255)
    )
)
"""Bytes that are no frame, or a frame that holds no object, for the most part."""


def _flipped(body: bytes, at: int, bits: int) -> bytes:
    changed = bytearray(body)
    changed[at % len(changed)] ^= bits
    return bytes(changed)
