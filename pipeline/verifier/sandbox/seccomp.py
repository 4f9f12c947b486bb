"""The system calls a job may not make, as a classic BPF program for seccomp(2).

The program is the same in every tier but for unix sockets. It refuses what reaches other processes, the
kernel or new namespaces; `clone3` and io_uring are reported as absent, so that the C library falls back.

It also refuses every way to have the kernel send SIGCONT later on, which would let a stopped job go on:
timers and queues that notify by a signal of one's choice, such a signal for descriptors that become ready,
and SIGCONT at the end of a child or of a parent. Interval timers and alarms stay: their signals are others,
and wait until the job is let go on. So do all other signals, and timers that are read from a descriptor.

And it refuses every way to end by SIGKILL, or to look like it: to send it, to have it sent at the end of a
child, a lower limit on processor time, and the exit code that stands for it. So a job that SIGKILL ended was
killed from outside.
"""

from __future__ import annotations

import errno
import platform
import struct

from kernelproof.errors import SandboxError

# Order of the numbers: x86-64, arm64 (from the kernel's syscall tables).
_REFUSED: dict[str, tuple[int, int]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "open_tree": (428, 428),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # a signal later on
    "mq_notify": (244, 184),
    # memory that no watchdog sees and no kill frees
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_secret": (447, 447),
}
_ABSENT: dict[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_SIGNALS: dict[str, tuple[int, int]] = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_SIGNAL_ARGUMENT = {"tgkill": 2, "rt_tgsigqueueinfo": 2}
"""Which argument names the signal; of the others it is the second."""
_EXITS = ((60, 93), (231, 94))
_SETRLIMIT = (160, 164)
_CLONE = (56, 220)
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_PRCTL = (157, 167)
_PRLIMIT = (302, 261)
_FCNTL = (72, 25)
_TIMER_CREATE = (222, 107)
_AUDIT_ARCH = (0xC000003E, 0xC00000B7)
_MACHINES = ("x86_64", "aarch64")

_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_PR_SET_DUMPABLE = 4  # a process that is not dumpable would hide its descriptors from the watchdog
_PR_SET_PDEATHSIG = 1
_F_SETSIG = 10
_AF_UNIX = 1
_SIGKILL, _SIGCONT = 9, 18
_KILLED = 128 + _SIGKILL  # how bwrap passes on that SIGKILL ended the job
_RLIMIT_CPU = 0
_SIGNAL_AT_END = 0xFF  # the bits of clone's flags that name the signal for the parent

_LOAD, _IF_EQUAL, _IF_BITS, _IF_AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_AT_NUMBER, _AT_ARCH = 0, 4


def _op(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)


def _refuse(number: int, error: int) -> bytes:
    return _op(_IF_EQUAL, number, 0, 1) + _op(_RETURN, _ERRNO | error)


def _argument(index: int, *, upper: bool = False) -> bytes:
    """Loads the lower half of an argument, or the upper one."""
    return _op(_LOAD, 16 + 8 * index + 4 * upper)


def _on(number: int, *body: bytes) -> bytes:
    """Runs `body` when the call is `number`; afterwards the number is loaded again."""
    code = b"".join(body) + _op(_LOAD, _AT_NUMBER)
    return _op(_IF_EQUAL, number, 0, len(code) // 8) + code


def _later_signals(column: int) -> bytes:
    """Refuses what has the kernel send SIGCONT, or what cannot be told from it, at some later time."""
    refuse = _op(_RETURN, _ERRNO | errno.EPERM)
    refuse_sigcont = _op(_IF_EQUAL, _SIGCONT, 0, 1) + refuse
    refuse_sigkill = _op(_IF_EQUAL, _SIGKILL, 0, 1) + refuse
    refuse_pointer = _op(_IF_EQUAL, 0, 1, 0) + refuse
    return (
        # The memory it points to names the signal, and a filter cannot look there; without it, it is SIGALRM.
        _on(_TIMER_CREATE[column], _argument(1), refuse_pointer, _argument(1, upper=True), refuse_pointer)
        + _on(_FCNTL[column], _argument(1), _op(_IF_EQUAL, _F_SETSIG, 0, 1), refuse)
        + _on(_CLONE[column], _argument(0), _op(_AND, _SIGNAL_AT_END), refuse_sigcont, refuse_sigkill)
        + _on(
            _PRCTL[column],
            _argument(0),
            _op(_IF_EQUAL, _PR_SET_PDEATHSIG, 0, 3),
            _argument(1),
            refuse_sigcont,
        )
    )


def _killed_from_within(column: int) -> bytes:
    """Refuses what lets a job end by SIGKILL or as if by it."""
    refuse = _op(_RETURN, _ERRNO | errno.EPERM)
    code = b""
    for name, numbers in _SIGNALS.items():
        signal = _argument(_SIGNAL_ARGUMENT.get(name, 1))
        code += _on(numbers[column], signal, _op(_IF_EQUAL, _SIGKILL, 0, 1), refuse)
    for numbers in _EXITS:  # refused it would be called again
        status = _argument(0) + _op(_AND, 0xFF)
        code += _on(numbers[column], status, _op(_IF_EQUAL, _KILLED, 0, 1), _op(_RETURN, _KILL))
    code += _on(_SETRLIMIT[column], _argument(0), _op(_IF_EQUAL, _RLIMIT_CPU, 0, 1), refuse)
    new = _argument(2) + _op(_IF_EQUAL, 0, 1, 0) + refuse + _argument(2, upper=True)
    new += _op(_IF_EQUAL, 0, 1, 0) + refuse
    cpu = _op(_IF_EQUAL, _RLIMIT_CPU, 0, len(new) // 8) + new
    return code + _on(_PRLIMIT[column], _argument(1), cpu)


def program(*, unix_sockets: bool, signals: bool = True) -> bytes:
    """The filter for this machine's architecture: 8 bytes an instruction, as the kernel takes it.

    `unix_sockets`: whether `socket(AF_UNIX)` is allowed (CUDA needs it; harmless in a network namespace,
    where abstract names are private and the mounts hold no socket). Every other family is refused always;
    `socketpair(AF_UNIX)` is allowed always. `signals`: whether processes may signal at all, themselves
    included; they may not where nothing else keeps the job from signalling us. Raises `SandboxError` on an
    unknown architecture.
    """
    if platform.machine() not in _MACHINES:
        raise SandboxError(
            f"No system-call filter is known for {platform.machine()}: x86_64 or aarch64 needed."
        )
    column = _MACHINES.index(platform.machine())
    code = _op(_LOAD, _AT_ARCH) + _op(_IF_EQUAL, _AUDIT_ARCH[column], 1, 0) + _op(_RETURN, _KILL)
    code += _op(_LOAD, _AT_NUMBER)
    if column == 0:
        code += _op(_IF_AT_LEAST, _X32_BIT, 0, 1) + _op(_RETURN, _KILL)
    refused = _REFUSED if signals else _REFUSED | _SIGNALS
    for table, error in ((refused, errno.EPERM), (_ABSENT, errno.ENOSYS)):
        for numbers in table.values():
            code += _refuse(numbers[column], error)
    not_unix = _op(_IF_EQUAL, _AF_UNIX, 1, 0) + _op(_RETURN, _ERRNO | errno.EACCES)
    no_socket = not_unix if unix_sockets else _op(_RETURN, _ERRNO | errno.EACCES)
    refuse = _op(_RETURN, _ERRNO | errno.EPERM)
    first = _argument(0)
    code += _on(_SOCKET[column], first, no_socket)
    code += _on(_SOCKETPAIR[column], first, not_unix)
    code += _on(_CLONE[column], first, _op(_IF_BITS, _NEW_NAMESPACES, 0, 1), refuse)
    code += _on(_PRCTL[column], first, _op(_IF_EQUAL, _PR_SET_DUMPABLE, 0, 1), refuse)
    # prlimit(2) on another process of the same user could end it
    code += _on(_PRLIMIT[column], first, _op(_IF_EQUAL, 0, 1, 0), refuse)
    return code + _killed_from_within(column) + _later_signals(column) + _op(_RETURN, _ALLOW)
