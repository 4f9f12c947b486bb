"""The form of an output: structure, type, shape, dtype and device, as the contestant describes them."""

from __future__ import annotations

from typing import Any

from kernelproof.types import Status
from kernelproof.types.check_kinds import OUTPUT_FORM
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.referee.ledger import Ledger

_KEYS = (
    ("type", Status.WRONG_DTYPE),
    ("shape", Status.WRONG_SHAPE),
    ("dtype", Status.WRONG_DTYPE),
    ("device", Status.WRONG_DTYPE),
    ("value", Status.WRONG_OUTPUT),
)


def check_form(reply: dict[str, Any], wanted: loop.OutputMeta, ledger: Ledger) -> None:
    """Raises Ended where the described output is not like the reference's. The reply is untrusted.

    A list counts as a tuple. Other strides are harmless, since values are read in the reference's order: they
    are noted, once.
    """
    output = reply.get("output")
    found = output if isinstance(output, dict) else {}
    if _loose(found.get("structure")) != _loose(wanted.structure):
        seen = f"structure {found.get('structure')!s:.200} instead of {wanted.structure!s:.200}"
        raise ledger.failed(Status.WRONG_SHAPE, OUTPUT_FORM, seen)
    leaves = found.get("leaves")
    if not isinstance(leaves, list) or len(leaves) != len(wanted.leaves):
        raise ledger.failed(Status.WRONG_SHAPE, OUTPUT_FORM, "another number of outputs")
    for index, (mine, other) in enumerate(zip(leaves, wanted.leaves, strict=True)):
        _check_leaf(index, mine if isinstance(mine, dict) else {}, other, ledger)
    if reply.get("copied") is not True:
        raise ledger.failed(Status.WRONG_SHAPE, OUTPUT_FORM, "the outputs could not be copied")


def _check_leaf(index: int, mine: dict[str, Any], wanted: dict[str, Any], ledger: Ledger) -> None:
    for key, status in _KEYS:
        if mine.get(key) != wanted.get(key):
            seen = f"output {index}: {key} {mine.get(key)!s:.100} instead of {wanted.get(key)!s:.100}"
            figures = {"output": index, "found": str(mine.get(key))[:100], "expected": wanted.get(key)}
            raise ledger.failed(status, OUTPUT_FORM, seen, figures)
    if mine.get("stride") != wanted.get("stride"):
        ledger.note_strides(index, str(mine.get("stride"))[:100], str(wanted.get("stride"))[:100])


def _loose(structure: Any) -> Any:
    """A structure in which a list counts as a tuple: callers unpack both alike."""
    if isinstance(structure, list) and len(structure) == 2 and structure[0] in ("tuple", "list"):
        items = structure[1] if isinstance(structure[1], list) else []
        return ["sequence", [_loose(item) for item in items]]
    return structure
