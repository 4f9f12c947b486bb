"""Rewrites the help texts in docs/reference/cli.md. `--check` only says whether that would change them.

A block stands between ``<!-- help: COMMAND -->`` and ``<!-- end -->``; no COMMAND is the program itself.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
BLOCK = re.compile(r"<!-- help: ?(?P<command>[a-z -]*?) ?-->\n(?P<body>.*?)<!-- end -->", re.DOTALL)


def help_of(command: str) -> str:
    """What `kernelproof COMMAND --help` prints, 80 columns wide."""
    program = Path(sys.executable).with_name("kernelproof")
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    words = [str(program), *command.split(), "--help"]
    return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout.rstrip()


def rewritten(page: str) -> str:
    """The page with every help block as the program prints it now."""
    return BLOCK.sub(_block, page)


def _block(found: re.Match[str]) -> str:
    command = found["command"]
    shown = " ".join(("kernelproof", *command.split(), "--help"))
    return f"<!-- help: {command} -->\n```console\n$ {shown}\n{help_of(command)}\n```\n<!-- end -->"


def main() -> int:
    """Rewrites the page; with --check, exit code 1 when it would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    old = PAGE.read_text()
    new = rewritten(old)
    if options.check:
        return int(new != old)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
