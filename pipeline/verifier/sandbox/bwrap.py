"""The bubblewrap command line of tiers A and B.

What it ends in, from the outside in: bwrap makes the namespaces and mounts and loads the system-call
filter; `setpriv` gives up root (tier A); `prlimit` sets all limits but one, inside the user namespace in
tier B so that processes are counted there; the gate enters the scratch directory, says that it is ready,
waits for a line from us, and becomes the job. A gate whose harness has died reads end-of-file and ends, so a
job never starts after its harness.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox.model import Job, Tier
from kernelproof.verifier.sandbox.paths import SYSTEM, SYSTEM_FILES

START_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""bwrap's own, which the job can read in /proc/1/environ: so nothing of ours."""

GATE = 'cd -- "$1" && shift && echo >&0 && read -r _ && exec "$@" </dev/null'

_NVIDIA_CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm")
_NVIDIA_OPTIONAL = ("/dev/nvidia-uvm-tools",)


def find() -> str | None:
    """The bwrap program: `KERNELPROOF_BWRAP`, else the one on PATH, else None."""
    return os.environ.get("KERNELPROOF_BWRAP") or shutil.which("bwrap")


@functools.cache
def _can_disable_namespaces(program: str) -> bool:
    """Whether this bwrap has `--disable-userns` (0.8.0 and later)."""
    result = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    return "--disable-userns" in result.stdout + result.stderr


def command(job: Job, tier: Tier, uid: int | None, status_fd: int, filter_fd: int) -> list[str]:
    """The whole command line.

    `uid`: the user id to drop to (tier A). `status_fd`: where bwrap writes its JSON lines. `filter_fd`: where
    it reads the seccomp program. Raises `SandboxError` when bwrap or a device of the job is missing.
    """
    program = find()
    if program is None:
        raise SandboxError("bwrap is not installed: install the package bubblewrap.")
    cpu = max(1, round(job.limits.cpu_s))
    argv = [
        "/usr/bin/prlimit",  # here, as the filter refuses to change this limit
        f"--cpu={cpu}:{cpu + 1}",
        "--",
        program,
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    if tier is Tier.B:
        argv += ["--unshare-user"]
        argv += ["--disable-userns"] if _can_disable_namespaces(program) else []
    argv += ["--hostname", "sandbox", "--die-with-parent", "--new-session"]
    argv += [*_system(), *_devices(job), *_binds(job), "--remount-ro", "/dev", "--remount-ro", "/"]
    argv += ["--seccomp", str(filter_fd), "--json-status-fd", str(status_fd), "--cap-drop", "ALL"]
    if uid is None:
        argv += ["--"]
    else:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            argv += ["--cap-add", capability]
        groups = ",".join(map(str, device_groups(job)))
        argv += ["--", "/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}"]
        argv += [f"--groups={groups}"] if groups else ["--clear-groups"]
        argv += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
    argv += ["/usr/bin/prlimit", *_rlimits(job), "--"]
    return [*argv, "/bin/sh", "-c", GATE, "gate", str(job.scratch), *_with_environment(job)]


def environment(job: Job) -> dict[str, str]:
    """The job's whole environment, the same in every tier."""
    scratch = str(job.scratch)
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": scratch,
        "TMPDIR": scratch,
        "USER": "candidate",
        "LOGNAME": "candidate",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **job.env,
    }


def _with_environment(job: Job) -> list[str]:
    """The job behind `env`: set this late, a variable such as LD_PRELOAD reaches no program of ours."""
    return ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment(job).items()), *job.argv]


def _system() -> Iterator[str]:
    for top in SYSTEM:
        if Path(top).is_symlink():
            yield from ("--symlink", str(Path(top).readlink()), top)
        elif Path(top).is_dir():
            yield from ("--ro-bind", top, top)
    yield from ("--perms", "0755", "--dir", "/etc")
    for name in SYSTEM_FILES:
        yield from ("--ro-bind-try", name, name)
    yield from ("--proc", "/proc", "--dev", "/dev")


def _devices(job: Job) -> Iterator[str]:
    # Files there are memory that belongs to no process: together not more than the processes may have.
    size = min(job.limits.scratch_bytes, job.limits.memory_bytes // 2)
    for directory in ("/dev/shm", "/tmp"):
        yield from ("--size", str(size), "--perms", "1777", "--tmpfs", directory)
    if job.gpus:
        for node in gpu_nodes(job):  # dev-bind: other mounts have no devices
            yield from ("--dev-bind", node, node)
        yield from ("--ro-bind", "/sys", "/sys")  # without it cuInit finds no device


def _binds(job: Job) -> Iterator[str]:
    """The job's own paths, parents first; directories on the way are made here, for bwrap's are 0700."""
    made = {Path("/")}
    for path in sorted({*job.read_only, job.scratch}, key=lambda path: path.parts):
        for parent in reversed(path.parents):
            if parent not in made:
                made.add(parent)
                yield from ("--perms", "0755", "--dir", str(parent))
        yield from ("--bind" if path == job.scratch else "--ro-bind", str(path), str(path))
        made.add(path)


def gpu_nodes(job: Job) -> list[str]:
    """The device files of the job's GPUs. Raises `SandboxError` when one is missing."""
    if not job.gpus:
        return []
    needed = [f"/dev/nvidia{minor}" for minor in job.gpus] + list(_NVIDIA_CONTROL)
    missing = [node for node in needed if not Path(node).exists()]
    if missing:
        raise SandboxError(
            f"No device file {', '.join(missing)}: run nvidia-smi or nvidia-modprobe once as root."
        )
    return needed + [node for node in _NVIDIA_OPTIONAL if Path(node).exists()]


def device_groups(job: Job) -> list[int]:
    """Groups that open the job's device files to a user other than their owner; mostly none is needed.

    Raises `SandboxError` when a device file is closed to everybody but its owner.
    """
    groups = set()
    for node in gpu_nodes(job):
        status = Path(node).stat()
        if stat.S_IMODE(status.st_mode) & 0o006 == 0o006:
            continue
        if stat.S_IMODE(status.st_mode) & 0o060 != 0o060 or status.st_gid == 0:
            raise SandboxError(f"A sandboxed user cannot open {node}: chmod 0666 {node}.")
        groups.add(status.st_gid)
    return sorted(groups)


def _rlimits(job: Job) -> Iterator[str]:
    limits = job.limits
    yield "--core=0:0"
    yield f"--fsize={limits.file_bytes}:{limits.file_bytes}"
    yield f"--nofile={limits.open_files}:{limits.open_files}"
    yield f"--nproc={limits.processes}:{limits.processes}"
    if limits.address_space_bytes is not None:
        yield f"--as={limits.address_space_bytes}:{limits.address_space_bytes}"
