"""The page on disk."""

from __future__ import annotations

from pathlib import Path

from kernelproof.errors import MachineError


def write(text: str, path: Path) -> int:
    """Writes the page and returns its size in bytes. Raises MachineError where that cannot be."""
    data = text.encode("utf-8")
    try:
        path.write_bytes(data)
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror or 'the disk refused it'}") from None
    return len(data)
