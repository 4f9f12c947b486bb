"""A job in tiers A and B: bubblewrap's command line, and a tree of processes in a pid namespace, which dies
with its first process.

What the command line ends in, from the outside in: bwrap makes the namespaces and mounts and loads the
system-call filter; `setpriv` gives up root (tier A); `prlimit` sets all limits but one, inside the user
namespace in tier B so that processes are counted there; the gate enters the scratch directory, says that it
is ready, waits for a line from us, and becomes the job. A gate whose harness has died reads end-of-file and
ends, so a job never starts after its harness.

Nothing outlives a harness, at whatever moment it is killed.

bwrap ends with its harness (`--die-with-parent`), but for one moment: between making the namespaces' first
process and letting it go on. Should it be killed then, that process waits for it for ever. So a sweeper, a
small process of its own, waits for the end of each harness and looks for such. Tiers C and D have the
warden.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import procfs, seccomp
from kernelproof.verifier.sandbox.model import Job, Tier
from kernelproof.verifier.sandbox.paths import SYSTEM, SYSTEM_FILES
from kernelproof.verifier.sandbox.pausing import Freezer
from kernelproof.verifier.sandbox.tree import START_S, Gate, Slot, TreeEnd, freezer_for, spawn

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


SWEEPER = Path(__file__).with_name("sweeper.py")
NAME = "KERNELPROOF_HARNESS"

_lock = threading.Lock()
_mark: str | None = None
_lifeline = -1


def lifeline_environment() -> dict[str, str]:
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


class BwrapTree:
    """The tree below one bwrap process.

    The kernel ends the first process of a pid namespace only after it has killed and collected every other
    one in it (pid_namespaces(7)), so that process's pidfd becoming readable proves the tree empty.
    """

    def __init__(self, job: Job, tier: Tier, slot: Slot | None) -> None:
        """Starts the job and lets it go. Raises `SandboxError` with bwrap's own words when it cannot."""
        self._slot = slot
        self._init_fd = -1
        self.freezer: Freezer | None = None
        with Gate() as gate:
            self._child, self._status_fd = _spawn(job, tier, slot, gate)
            assert self._child.stdout is not None and self._child.stderr is not None
            self.root = self._child.pid
            self.stdout, self.stderr = self._child.stdout.fileno(), self._child.stderr.fileno()
            for descriptor in (self.stdout, self.stderr):
                os.set_blocking(descriptor, False)
            self.exit_fd = os.pidfd_open(self.root)
            try:
                gate.await_ready(self.stderr, self.exit_fd)
                first_line = os.read(self._status_fd, 4096).split(b"\n")[0]
                self._init_fd = os.pidfd_open(json.loads(first_line)["child-pid"])
                procfs.step_back(self.root, job.nice, killed_first=True)
                self.freezer = freezer_for(job, self.root)
                gate.let_go()
            except BaseException:
                self.end(START_S)
                self.close()
                raise

    def end(self, grace_s: float) -> TreeEnd:
        """Kills the namespace's first process, then bwrap's outer one, and waits for both."""
        deadline = time.monotonic() + grace_s
        gone = True
        for descriptor in (self._init_fd, self.exit_fd):
            if descriptor >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                gone = _readable(descriptor, deadline) and gone
        if not gone:  # its user id stays taken
            return TreeEnd(None, None, 0.0, tuple(procfs.descendants(self.root)))
        _, status, usage = os.wait4(self.root, 0)
        self._child.returncode = code = os.waitstatus_to_exitcode(status)
        if self._slot:
            self._slot.release()
        cpu_s = usage.ru_utime + usage.ru_stime
        if code < 0:
            return TreeEnd(None, -code, cpu_s)
        # bwrap passes a signal on as 128 + its number, as a shell does. 255 is the program's own.
        by_signal = 128 < code < 128 + signal.NSIG
        return TreeEnd(None, code - 128, cpu_s) if by_signal else TreeEnd(code, None, cpu_s)

    def close(self) -> None:
        """Closes every descriptor."""
        for stream in (self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()
        for descriptor in (self.exit_fd, self._status_fd, self._init_fd):
            if descriptor >= 0:
                os.close(descriptor)
        if self.freezer is not None:
            self.freezer.close()


def _spawn(job: Job, tier: Tier, slot: Slot | None, gate: Gate) -> tuple[subprocess.Popen[bytes], int]:
    """bwrap's outer process, and where its JSON lines are read."""
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    filter_fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    try:
        os.write(filter_fd, seccomp.program(unix_sockets=True))
        os.lseek(filter_fd, 0, os.SEEK_SET)
        argv = command(job, tier, slot.uid if slot else None, status_write, filter_fd)
        environment = lifeline_environment()
        child = spawn(
            lambda: subprocess.Popen(
                argv,
                env=environment,
                cwd="/",
                stdin=gate.far.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(*job.pass_fds, status_write, filter_fd),
                start_new_session=True,
            ),
            job.cores,
        )
    except BaseException as problem:
        os.close(status_read)
        if isinstance(problem, OSError):
            raise SandboxError(f"{find()} cannot be started: {problem}.") from problem
        raise
    finally:
        os.close(status_write)
        os.close(filter_fd)
    return child, status_read


def _readable(descriptor: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
