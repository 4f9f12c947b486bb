"""Which tier this machine offers, found by starting something confined and seeing it refused things.

`launch` starts a job in a given tier. `container` says whether this process runs in a container, and which of
the container's options weaken the sandbox.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import bwrap, landlock, pausing
from kernelproof.verifier.sandbox.bwrap import BwrapTree
from kernelproof.verifier.sandbox.model import Confinement, Job, Tier
from kernelproof.verifier.sandbox.paths import (
    ClosedToJobs,
    Scratch,
    prepare_scratch,
    python_paths,
    require_readable,
)
from kernelproof.verifier.sandbox.tree import FIRST_UID, UID_COUNT, Tree, needs_slot, slots_exist, take_slot
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
        case Tier.A | Tier.C1 if not slots_exist():
            last = FIRST_UID + UID_COUNT - 1
            return (
                f"this user namespace has no user ids {FIRST_UID} to {last} for jobs (/proc/self/uid_map):"
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
    own_uid = needs_slot(tier)
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
    slot = take_slot() if needs_slot(tier) else None
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


_MARKS = {
    ".dockerenv": "Docker",
    "run/.containerenv": "Podman",
    "var/run/secrets/kubernetes.io": "Kubernetes",
}
_NAMES = {"podman": "Podman", "docker": "Docker", "lxc": "LXC"}
"""Values of the variable `container`, and the engines that write them."""
_FILTERING = "2"
"""`Seccomp` in /proc/PID/status where a filter is loaded."""


@dataclass(frozen=True)
class Container:
    """The container around this process, as its files tell."""

    engine: str
    """`Docker`, `Podman`, `Kubernetes`; what the variable `container` says; `unknown`."""
    root: bool
    """Whether this process is the container's user 0."""
    admin: bool
    """Whether it has CAP_SYS_ADMIN."""
    filtered: bool
    """Whether the engine's system-call filter is in force."""
    apparmor: str
    """The AppArmor profile that is enforced; empty: none."""
    masked: bool
    """Whether parts of /proc are covered, so that nobody may mount another one."""
    refused_by_host: str
    """The setting of the host that refuses user namespaces to ordinary users; empty: none."""

    def remedies(self, tier: Tier | None, *, bubblewrap: bool) -> list[str]:
        """Options that would give a stronger tier than `tier` (None: none works), one after the other."""
        if tier is Tier.A or (tier is Tier.B and not self.root):
            return []
        return list(self._remedies(bubblewrap))

    def _remedies(self, bubblewrap: bool) -> Iterator[str]:
        if not bubblewrap:
            yield "install bubblewrap in the image"
        if self.root and not self.admin:
            yield "run as an ordinary user (--user 10001), or as root with --cap-add SYS_ADMIN"
        if self.filtered:
            yield "--security-opt seccomp=unconfined"
        if self.apparmor:
            yield "--security-opt apparmor=unconfined"
        if self.masked:
            podman = self.engine == "Podman"
            yield "--security-opt unmask=ALL" if podman else "--security-opt systempaths=unconfined"
        if self.refused_by_host and not self.root:
            yield f"on the host: sysctl -w {self.refused_by_host}"


def container(top: Path = Path("/")) -> Container | None:
    """The container that this process runs in; None outside of one. `top`: the directory taken for `/`."""
    engine = _engine(top)
    if engine is None:
        return None
    status = _status_fields(top / "proc/self/status")
    return Container(
        engine=engine,
        root=status.get("Uid", "").split()[1:2] == ["0"],
        admin=bool(int(status.get("CapEff", "0"), 16) & _CAP_SYS_ADMIN),
        filtered=status.get("Seccomp") == _FILTERING,
        apparmor=_profile(_text_of(top / "proc/self/attr/current")),
        masked=_masked(_text_of(top / "proc/self/mountinfo")),
        refused_by_host=_refusal(top / "proc/sys"),
    )


def _engine(top: Path) -> str | None:
    for mark, name in _MARKS.items():
        if (top / mark).exists():
            return name
    pairs = (pair.partition("=") for pair in _text_of(top / "proc/self/environ").split("\0"))
    variables = {name: value for name, _, value in pairs}
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "Kubernetes"
    named = variables.get("container")
    return None if named is None else _NAMES.get(named, named or "unknown")


def _masked(mounts: str) -> bool:
    return any(_place(line).startswith("/proc/") for line in mounts.splitlines())


def _place(line: str) -> str:
    fields = line.split()
    return fields[4] if len(fields) > 4 else ""


def _profile(text: str) -> str:
    """`docker-default (enforce)` is in force; `unconfined` and profiles that only complain are not."""
    name, _, mode = text.strip("\0\n ").rpartition(" ")
    return name if mode == "(enforce)" else ""


def _refusal(settings: Path) -> str:
    if _text_of(settings / "user/max_user_namespaces").strip() == "0":
        return "user.max_user_namespaces=15000"
    if _text_of(settings / "kernel/unprivileged_userns_clone").strip() == "0":
        return "kernel.unprivileged_userns_clone=1"
    if _text_of(settings / "kernel/apparmor_restrict_unprivileged_userns").strip() == "1":
        return "kernel.apparmor_restrict_unprivileged_userns=0"
    return ""


def _status_fields(path: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in _text_of(path).splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
