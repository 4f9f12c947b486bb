"""Which tier this machine offers, found by starting something confined and seeing it refused things; and
`launch`, which starts a job in a given tier.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import threading
from pathlib import Path
from typing import Any

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import bwrap, landlock, pausing, slots
from kernelproof.verifier.sandbox.bwrap import BwrapTree
from kernelproof.verifier.sandbox.model import Confinement, Job, Tier
from kernelproof.verifier.sandbox.paths import (
    ClosedToJobs,
    Scratch,
    prepare_scratch,
    python_paths,
    require_readable,
)
from kernelproof.verifier.sandbox.tree import Tree
from kernelproof.verifier.sandbox.warden_tree import WardenTree

_CAP_SYS_ADMIN = 1 << 21
_PROBE_S = 60.0

_INSTALL = (
    "Install bubblewrap and util-linux (apt install bubblewrap), and allow user namespaces or run as "
    "root; in a container, a kernel with Landlock (5.13 or later) also does."
)
_OPEN = "This Python is closed to the job's user: a `chmod` below opens it."

_CHECK = """
import json, os, socket, sys
secret, beside = sys.argv[1:]
def refused(action):
    try:
        action()
    except OSError:
        return True
    return False
status = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
open('written', 'w').close()
refused(lambda: open(beside, 'w').close())
print(json.dumps({
    'read': refused(lambda: open(secret).close()),
    'socket': refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()),
    'uid': os.getuid(),
    'seccomp': int(status['Seccomp']),
    'no_new_privs': int(status['NoNewPrivs']),
    'capabilities': int(status['CapEff'], 16),
}))
"""

_lock = threading.Lock()
_probed: dict[tuple[bool, str | None, str | None], Confinement | SandboxError] = {}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def probe(*, unsafe: bool = False) -> Confinement:
    """The strongest tier that works here, tried once for a process and then remembered.

    `KERNELPROOF_SANDBOX` names one tier to use instead of the strongest; tier D needs `unsafe` all the same.
    `KERNELPROOF_BWRAP` names the bwrap program. Raises `SandboxError` saying what to install or allow when
    nothing works, or nothing but D and not `unsafe`.
    """
    key = (unsafe, os.environ.get("KERNELPROOF_SANDBOX"), os.environ.get("KERNELPROOF_BWRAP"))
    with _lock:
        if key not in _probed:
            try:
                _probed[key] = _probe(unsafe, key[1])
            except SandboxError as problem:
                _probed[key] = problem
        found = _probed[key]
    if isinstance(found, SandboxError):
        raise found
    return found


def _probe(unsafe: bool, forced: str | None) -> Confinement:
    if forced is not None and forced not in Tier.__members__:
        raise SandboxError(f"KERNELPROOF_SANDBOX={forced} is no tier: it is one of {', '.join(Tier)}.")
    refusals: list[str] = []
    closed = set()
    for tier in [Tier(forced)] if forced is not None else list(Tier):
        try:
            reason = _not_offered(tier, unsafe) or _try(tier)
        except ClosedToJobs as problem:
            reason = str(problem)
            closed.add(tier)
        if reason is None:
            return Confinement(tier, _layers(tier), tuple(refusals))
        refusals.append(f"tier {tier}: {reason}")
    # Where bubblewrap is there and root's Python is closed to it, nothing to install mends that.
    advice = _OPEN if Tier.A in closed else f"{_INSTALL} {_OPEN}" if closed else _INSTALL
    raise SandboxError("No sandbox works here. " + advice + "".join(f"\n  {line}" for line in refusals))


def _not_offered(tier: Tier, unsafe: bool) -> str | None:
    """Why a tier is not even tried, or None."""
    root = os.geteuid() == 0
    match tier:
        case Tier.A if not root:
            return "needs root"
        case Tier.A if not _effective_capabilities() & _CAP_SYS_ADMIN:
            return "root without CAP_SYS_ADMIN (a container's): it cannot make namespaces"
        case Tier.B if root:
            return "as root the job would be the kernel's user 0"
        case Tier.A | Tier.B if bwrap.find() is None:
            return "bwrap is not installed (package bubblewrap)"
        case Tier.C1 if not root:
            return "needs root, to give the job a user id of its own"
        case Tier.A | Tier.C1 if not slots.exist():
            last = slots.FIRST + slots.COUNT - 1
            return (
                f"this user namespace has no user ids {slots.FIRST} to {last} for jobs (/proc/self/uid_map):"
                " map them, or run as the ordinary user outside it"
            )
        case Tier.C2 if root:
            return "as root the job would be the kernel's user 0"
        case Tier.D if not unsafe:
            return "hides nothing of this machine from the job; needs --unsafe"
    return None


def _effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _try(tier: Tier) -> str | None:
    """Runs the check in a tier: None when everything forbidden failed, else what did not hold.

    Raises `ClosedToJobs` when the check's own Python is closed to the job's user.
    """
    with Scratch() as place:
        top = place.path
        top.chmod(0o711)
        secret, beside, scratch = top / "secret", top / "beside", top / "scratch"
        secret.write_text("not yours")
        scratch.mkdir()
        argv = (sys.executable, "-I", "-S", "-c", _CHECK, str(secret), str(beside))
        try:
            tree = launch(Job(argv, scratch, read_only=python_paths()), tier)
        except ClosedToJobs:
            raise
        except SandboxError as problem:
            return str(problem)
        try:
            select.select([tree.exit_fd], [], [], _PROBE_S)
            ended = tree.end(_PROBE_S)
            if ended.exit_code != 0:
                return f"the check failed: {_read(tree.stderr) or ended}"
            seen: dict[str, Any] = json.loads(_read(tree.stdout))
        except ValueError as problem:
            return f"the check gave no answer: {problem}"
        finally:
            tree.close()
        seen["write"] = not beside.exists()  # inside it may seem to succeed, on a file system that is gone
    wrong = [name for name in ("read", "write", "socket") if not seen[name] and tier is not Tier.D]
    wrong += [name for name in ("seccomp", "no_new_privs") if not seen[name]]
    wrong += ["uid"] if seen["uid"] == 0 else []
    wrong += ["capabilities"] if seen["capabilities"] else []
    return f"not confined in: {', '.join(wrong)}" if wrong else None


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, 1 << 16).decode(errors="replace").strip()
    except BlockingIOError:
        return ""


def _layers(tier: Tier) -> dict[str, str]:
    """What is in force in a tier, layer by layer; `none` where nothing is."""
    if tier in (Tier.A, Tier.B):
        layers = {
            "user_namespace": "own" if tier is Tier.B else "none",
            "pid_namespace": "own",
            "network": "own namespace with nothing up; seccomp: unix sockets only",
            "mounts": "allow-list in a mount namespace of its own",
            "landlock": "none",
            "memory": "watchdog every 200 ms; OOM-killed first; sized tmpfs",
            "files": "RLIMIT_FSIZE; scratch watched; sized tmpfs",
            "kill": "SIGKILL to the pid namespace",
        }
    else:
        abi = landlock.version() if tier is not Tier.D else 0
        layers = {
            "user_namespace": "none",
            "pid_namespace": "none",
            "network": "seccomp: no sockets (unix sockets with a GPU)",
            "mounts": "none",
            "landlock": f"ABI {abi}: allow-list{', signals scoped' if abi >= 6 else ''}" if abi else "none",
            "memory": "watchdog every 200 ms; OOM-killed first",
            "files": "RLIMIT_FSIZE; scratch watched",
            "kill": "warden: child subreaper with a lifeline",
        }
    own_uid = slots.needed(tier)
    return layers | {
        "seccomp": "filter",
        "uid": "one of the job's own" if own_uid else "the caller's",
        "no_new_privs": "set",
        "pause": "cgroup v2 freezer" if tier is not Tier.D and pausing.freezer_offered() else "SIGSTOP",
        "processes": "RLIMIT_NPROC"
        + (" for the job alone" if own_uid or tier is Tier.B else ", weak: all of the user's count"),
    }


def launch(job: Job, tier: Tier) -> Tree:
    """Starts the job. Raises `SandboxError` with the tool's own words when it cannot be confined so.

    Raises `ClosedToJobs`, a `SandboxError`, when the job's user may not read what the job is shown.
    """
    _require_sound(job)
    require_readable(job, tier)
    slot = slots.take() if slots.needed(tier) else None
    try:
        prepare_scratch(job.scratch, slot.uid if slot else None)
        return BwrapTree(job, tier, slot) if tier in (Tier.A, Tier.B) else WardenTree(job, tier, slot)
    except BaseException:
        if slot:
            slot.release()
        raise


def _require_sound(job: Job) -> None:
    if not job.argv or "=" in job.argv[0]:
        raise SandboxError("A job needs a command, whose first word has no '='.")
    for name, value in job.env.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise SandboxError(f"{name!r} cannot be set as an environment variable.")
    for path in (job.scratch, *job.read_only):
        if not path.is_absolute() or not path.exists():
            raise SandboxError(f"The sandbox cannot show {path}: it has to be an existing absolute path.")
