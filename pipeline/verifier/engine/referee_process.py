"""The orchestrator's end of a referee: a trusted process with torch in it, asked over a socket."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelproof import version
from kernelproof.errors import DeviceUnfit, KernelproofError, MachineError, UsageError
from kernelproof.types import Build, BuildRequest, CoreShares, Environment, Verification
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.contestant import wire
from kernelproof.verifier.devices.discovery import Gpu, environment_for
from kernelproof.verifier.workers.client import EVEN_GROUND, SILENT
from kernelproof.workspace import DATABASE_VARIABLE

START_SECONDS = 300.0
GOODBYE_SECONDS = 10.0
"""Most seconds for a referee to end what it keeps ready."""
LOOK_SECONDS = 0.05
"""How often a thread that waits for a referee's turn looks whether another thread has heard the answer."""
VERIFY_SECONDS = 3600.0
"""Most seconds for one verification, whatever its own limits: a referee that hangs is our failure."""

KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "KERNELPROOF_", "OMP_", "MKL_", "TORCH_", "LC_", "XDG_", "PYTORCH_")
KEPT_NAMES = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR", "USER")

OnStage = Callable[[str], None]
ALL_SHARED = CoreShares()
NOTHING: Mapping[str, Build] = MappingProxyType({})


class RefereeLost(KernelproofError):
    """The referee's process ended or went silent: our failure, never the candidate's."""


class HandedBack(KernelproofError):
    """The candidate wants something that is not built yet: it comes again when it is."""

    def __init__(self, request: BuildRequest) -> None:
        super().__init__(f"{request.name} is not built yet")
        self.request = request


class RefereeProcess:
    """One referee. Requests are answered one at a time; calls from several threads queue up."""

    def __init__(self, cache: Path, gpu: Gpu | None) -> None:
        self._cache = cache
        self.gpu = gpu
        """The GPU that it sees, its `cuda:0`; None: it sees none."""
        self._turn = threading.Lock()
        self._environments: dict[str, Environment] = {}
        """Environments by device, as the referee described them."""
        self._closed = False
        ours, theirs = socket.socketpair()
        lifeline_read, self._lifeline = os.pipe()
        self._sock = ours
        try:
            self._process = subprocess.Popen(
                [  # -P: a candidate `cuda.py` where the user stands is no module of ours
                    *(sys.executable, "-P", "-W", "ignore", "-m", "kernelproof.verifier.referee"),
                    *(str(theirs.fileno()), str(lifeline_read)),
                ],
                pass_fds=(theirs.fileno(), lifeline_read),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # what a problem prints is no word of ours, nor are its warnings
                env=referee_environment(cache) | environment_for(self.gpu),
                start_new_session=True,  # a Ctrl-C is for the orchestrator, which ends us in order
            )
        finally:
            theirs.close()
            os.close(lifeline_read)
        self._ready = False

    def environment(self, device: str) -> Environment:
        """What this machine is. Where a candidate is being judged, that has said so. Raises RefereeLost."""
        while device not in self._environments:
            if self._turn.acquire(timeout=LOOK_SECONDS):
                try:
                    reply = self._ask_now({"op": "environment", "device": device}, VERIFY_SECONDS)
                    self._environments[device] = Environment.model_validate(reply["environment"])
                finally:
                    self._turn.release()
        return self._environments[device]

    def verify(
        self,
        request: VerifyRequest,
        toolchain: Toolchain,
        on_stage: OnStage = lambda _: None,
        *,
        more: bool = False,
        cores: CoreShares = ALL_SHARED,
        builds: Mapping[str, Build] = NOTHING,
        hand_back: bool = False,
    ) -> Verification:
        """Judges one candidate, whose builds are those of `toolchain`.

        `more`: another one of this kind is likely to follow; processes for it come up meanwhile. `cores`:
        which are kept for what is timed, and which are for the rest. `builds`: its builds, by content.

        Raises HandedBack, with `hand_back`, when it wants something that is not built; RefereeLost;
        DeviceUnfit when its GPU had to be given up; UsageError or MachineError for what the user must mend.
        """
        message = self._message("verify", request, more, cores) | {
            "toolchain": toolchain.model_dump(mode="json"),
            "made": {content: build.model_dump(mode="json") for content, build in builds.items()},
            "hand_back": hand_back,
        }
        reply = self._ask(message, on_stage)
        if "needs" in reply:
            raise HandedBack(BuildRequest.model_validate(reply["needs"]))
        return Verification.model_validate(reply["verification"])

    def prepare(self, request: VerifyRequest, *, more: bool, cores: CoreShares) -> None:
        """Has it get ready for candidates like this one, which is still to be built, on its GPU.

        Raises RefereeLost, and what `verify` raises for this machine.
        """
        self._ask(self._message("prepare", request, more, cores), lambda _: None)

    def _message(self, op: str, request: VerifyRequest, more: bool, cores: CoreShares) -> dict[str, Any]:
        dumped = {"request": request.model_dump(mode="json"), "cores": cores.model_dump(mode="json")}
        return {"op": op, "cache": str(self._cache), "more": more, **dumped}

    def close(self) -> None:
        """Ends the process and everything it started. Safe to call twice, and from another thread."""
        if self._closed:
            return
        self._closed = True
        self._say_goodbye()
        os.close(self._lifeline)  # its watcher kills it, and its sandboxes die with it
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        self._sock.close()

    def _say_goodbye(self) -> None:
        """Lets a referee that is not at work put away what it keeps ready; another is killed as it is."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            if self._ready:
                wire.send(self._sock, {"op": "bye"})
                self._process.wait(GOODBYE_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            pass
        finally:
            self._turn.release()

    def _ask(self, message: dict[str, Any], on_stage: OnStage) -> dict[str, Any]:
        with self._turn:
            return self._ask_now(message, VERIFY_SECONDS, on_stage)

    def _ask_now(
        self, message: dict[str, Any], seconds: float, on_stage: OnStage = lambda _: None
    ) -> dict[str, Any]:
        """The reply; its turn is the caller's."""
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
                if "environment" in reply:
                    found = Environment.model_validate(reply["environment"])
                    self._environments[str(message["request"]["device"])] = found
                else:
                    on_stage(str(reply["stage"]))
        except (OSError, wire.WireError) as error:
            why = str(error) or type(error).__name__
            raise RefereeLost(f"the referee's process was lost ({why})") from None
        if "error" in reply:
            if reply.get("unfit"):
                raise DeviceUnfit(str(reply["error"]))
            kind = MachineError if reply.get("exit_code") == MachineError.exit_code else UsageError
            raise kind(str(reply["error"]))
        return reply


def referee_environment(cache: Path) -> dict[str, str]:
    """The variables a referee gets: no API key of the user's is among them, and no password of a database.

    `cache`: where what torch keeps by itself goes, which is otherwise left behind in the temporary directory.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if (name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)) and name != DATABASE_VARIABLE
    }
    kept |= EVEN_GROUND | {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "KINETO_LOG_LEVEL": SILENT}
    root = str(Path(version.__file__).parent.parent)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (root, kept.get("PYTHONPATH"))))
    return kept
