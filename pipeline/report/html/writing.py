"""The page on disk."""

from __future__ import annotations

from pathlib import Path

from kernelproof.errors import writing


def write(text: str, path: Path) -> int:
    """Writes the page and returns its size in bytes. Raises MachineError where that cannot be."""
    data = text.encode("utf-8")
    with writing(path):
        path.write_bytes(data)
    return len(data)
