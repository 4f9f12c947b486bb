#!/usr/bin/env python3
"""Prints a version's part of CHANGELOG.md: ``scripts/release_notes.py 0.3.0``

The exit code is 1 where the package has another version, or the changelog has no such part.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(changelog: str, version: str) -> str | None:
    """The lines between the version's heading and the next; None without such a heading or a line."""
    part = re.search(
        rf"^## {re.escape(version)}(?: [^\n]*)?$(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return (part[1].strip() or None) if part else None


def main() -> int:
    """Prints the notes of the version that the command line names."""
    (version,) = sys.argv[1:]
    text = (ROOT / "pipeline" / "version.py").read_text()
    if f'"{version}"' not in text:
        print(f"pipeline/version.py has another version than {version}", file=sys.stderr)
        return 1
    if (part := notes((ROOT / "CHANGELOG.md").read_text(), version)) is None:
        print(f"CHANGELOG.md has no part for {version}", file=sys.stderr)
        return 1
    print(part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
