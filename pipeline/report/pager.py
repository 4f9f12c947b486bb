"""Long texts on a terminal, shown by the user's pager."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

DEFAULT_ROWS = 24  # where the terminal does not know


def page(text: str) -> None:
    """Prints `text`, which must be clean; on a terminal that is too small for it through a pager.

    The pager is `$PAGER`, else less. An empty `$PAGER`, or `cat`, means none.
    """
    command = _pager() if sys.stdout.isatty() else []
    if not command or text.count("\n") < _rows():
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    # As git has it: one screen is printed, colours are shown, and what was read stays on the screen.
    environment = {"LESS": "FRX", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError:  # it is not installed, or misspelt
        sys.stdout.write(text)
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        pager.communicate(text.encode("utf-8", "replace"))  # it may end before it has read all
    finally:
        pager.wait()
        signal.signal(signal.SIGINT, before)


def _rows() -> int:
    """The terminal's own figure: `$LINES` may be what another terminal had."""
    return os.get_terminal_size(sys.stdout.fileno()).lines or DEFAULT_ROWS


def _pager() -> list[str]:
    try:
        chosen = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # quotes that do not match
        return []
    return [] if chosen == ["cat"] else chosen
