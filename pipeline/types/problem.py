"""A problem: a reference architecture file in the KernelBench format."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kernelproof.types.base import FrozenRecord


class Signature(FrozenRecord):
    """Parameter names, in order and without self, of a constructor or of forward; read with `ast`."""

    init: tuple[str, ...] = ()
    """Parameters of `Model.__init__`."""
    forward: tuple[str, ...] = ()
    """Parameters of `Model.forward`."""


class Problem(FrozenRecord):
    """A reference architecture: `class Model`, `get_inputs()`, `get_init_inputs()`. Read, never run, here."""

    id: str
    """`level1/23`: the folder's name and the file's number; the file's stem where it has no number."""
    suite: str
    """`kernelproof` for the packaged problems, else the suite folder's name, else `file`."""
    name: str
    """The file's stem without its number: `softmax`."""
    level: int | None = None
    """From a folder named `levelN`; None elsewhere."""
    source: str
    """The file's text, unchanged."""
    sha256: str
    """SHA-256 of `source`: results of different texts are never compared."""
    sizes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Named size presets: module-level names and the literals that replace them before get_inputs is called.

    A file declares them as a literal `SIZES = {"full": {...}, "small": {...}}`. A file without them has
    one preset, `full`, that changes nothing.
    """
    signature: Signature = Signature()
    """What a candidate's ModelNew must accept."""
    summary: str = ""
    """First line of the module's docstring, else the Model class's, else empty."""
