"""The orchestrator's end of a referee: a trusted process with torch in it, asked over a socket."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline import version
from pipeline.build import Toolchain
from pipeline.contestant import wire
from pipeline.errors import KernelproofError, MachineError, UsageError
from pipeline.nouns import Environment, Verification
from pipeline.referee.host import EVEN_GROUND
from pipeline.referee.request import VerifyRequest

START_SECONDS = 300.0
VERIFY_SECONDS = 3600.0
"""Most seconds for one verification, whatever its own limits: a referee that hangs is our failure."""

KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "KERNELPROOF_", "OMP_", "MKL_", "TORCH_", "LC_", "XDG_", "PYTORCH_")
KEPT_NAMES = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR", "USER")

OnStage = Callable[[str], None]


class RefereeLost(KernelproofError):
    """The referee's process ended or went silent: our failure, never the candidate's."""


class RefereeProcess:
    """One referee. Requests are answered one at a time; calls from several threads queue up."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._turn = threading.Lock()
        self._closed = False
        ours, theirs = socket.socketpair()
        lifeline_read, self._lifeline = os.pipe()
        self._sock = ours
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipeline.referee", str(theirs.fileno()), str(lifeline_read)],
                pass_fds=(theirs.fileno(), lifeline_read),
                stdin=subprocess.DEVNULL,
                env=referee_environment(),
                start_new_session=True,  # a Ctrl-C is for the orchestrator, which ends us in order
            )
        finally:
            theirs.close()
            os.close(lifeline_read)
        self._ready = False

    def environment(self, device: str) -> Environment:
        """What this machine is. Raises RefereeLost."""
        reply = self._ask({"op": "environment", "device": device}, VERIFY_SECONDS)
        return Environment.model_validate(reply["environment"])

    def verify(
        self, request: VerifyRequest, toolchain: Toolchain, on_stage: OnStage = lambda _: None
    ) -> Verification:
        """Judges one candidate; what it still wants built is built with `toolchain`, as the rest was.

        Raises RefereeLost; UsageError or MachineError for what the user must mend.
        """
        message = {
            "op": "verify",
            "request": request.model_dump(mode="json"),
            "toolchain": toolchain.model_dump(mode="json"),
            "cache": str(self._cache),
        }
        return Verification.model_validate(self._ask(message, VERIFY_SECONDS, on_stage)["verification"])

    def close(self) -> None:
        """Ends the process and everything it started. Safe to call twice, and from another thread."""
        if self._closed:
            return
        self._closed = True
        os.close(self._lifeline)  # its watcher kills it, and its sandboxes die with it
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        self._sock.close()

    def _ask(
        self, message: dict[str, Any], seconds: float, on_stage: OnStage = lambda _: None
    ) -> dict[str, Any]:
        with self._turn:
            try:
                if not self._ready:
                    self._sock.settimeout(START_SECONDS)
                    wire.receive(self._sock)
                    self._ready = True
                self._sock.settimeout(seconds)
                wire.send(self._sock, message)
                while True:
                    reply, _ = wire.receive(self._sock)
                    if "stage" not in reply:
                        break
                    on_stage(str(reply["stage"]))
            except (OSError, wire.WireError) as error:
                why = str(error) or type(error).__name__
                raise RefereeLost(f"the referee's process was lost ({why})") from None
        if "error" in reply:
            kind = MachineError if reply.get("exit_code") == MachineError.exit_code else UsageError
            raise kind(str(reply["error"]))
        return reply


def referee_environment() -> dict[str, str]:
    """The variables a referee gets: no API key of the user's is among them."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)
    }
    kept |= EVEN_GROUND
    root = str(Path(version.__file__).parent.parent)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (root, kept.get("PYTHONPATH"))))
    return kept
