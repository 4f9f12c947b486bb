"""Nothing outlives a harness, at whatever moment it is killed.

bwrap ends with its harness (`--die-with-parent`), but for one moment: between making the namespaces' first
process and letting it go on. Should it be killed then, that process waits for it for ever. So a sweeper, a
small process of its own, waits for the end of each harness and looks for such. Tiers C and D have the warden.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from pathlib import Path

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox.bwrap import START_ENVIRONMENT

SWEEPER = Path(__file__).with_name("sweeper.py")
NAME = "KERNELPROOF_HARNESS"

_lock = threading.Lock()
_mark: str | None = None
_lifeline = -1


def environment() -> dict[str, str]:
    """The environment for bwrap. A random variable in it, no secret, lets the sweeper recognise it.

    The first call starts the sweeper. Raises `SandboxError` when that cannot be done.
    """
    global _mark
    with _lock:
        if _mark is None:
            _mark = _watched_for(f"{NAME}={secrets.token_hex(16)}")
        name, _, value = _mark.partition("=")
        return START_ENVIRONMENT | {name: value}


def _watched_for(mark: str) -> str:
    global _lifeline
    far, near = os.pipe2(os.O_CLOEXEC)
    try:
        subprocess.run(  # which detaches itself
            [sys.executable, "-I", "-S", str(SWEEPER), mark],
            env=START_ENVIRONMENT,
            cwd="/",
            stdin=far,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
        )
    except BaseException as problem:
        os.close(near)
        if isinstance(problem, OSError | subprocess.CalledProcessError):
            raise SandboxError(f"{SWEEPER} cannot be started: {problem}.") from problem
        raise
    finally:
        os.close(far)
    _lifeline = near
    return mark


def _forget() -> None:
    """A forked child is a harness of its own, and does not keep the lifeline of another one open."""
    global _mark, _lifeline, _lock
    if _lifeline >= 0:
        os.close(_lifeline)
    _mark, _lifeline, _lock = None, -1, threading.Lock()


os.register_at_fork(after_in_child=_forget)
