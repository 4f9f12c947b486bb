"""The system-call filter, run by a small interpreter of classic BPF, on both architectures."""

from __future__ import annotations

import errno
import platform
import resource
import signal
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import seccomp

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
CLONE3 = 435
SOCKET = {"x86_64": 41, "aarch64": 198}
SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
CLONE = {"x86_64": 56, "aarch64": 220}
READ = {"x86_64": 0, "aarch64": 63}
KILL_CALL = {"x86_64": 62, "aarch64": 129}
TIMER_CREATE = {"x86_64": 222, "aarch64": 107}
FCNTL = {"x86_64": 72, "aarch64": 25}
MQ_NOTIFY = {"x86_64": 244, "aarch64": 184}
PRCTL = {"x86_64": 157, "aarch64": 167}
PRLIMIT = {"x86_64": 302, "aarch64": 261}
SETRLIMIT = {"x86_64": 160, "aarch64": 164}
EXITS = {"x86_64": (60, 231), "aarch64": (93, 94)}
SENDERS = {
    "x86_64": {62: False, 200: False, 234: True, 129: False, 297: True, 424: False},
    "aarch64": {129: False, 130: False, 131: True, 138: False, 240: True, 424: False},
}
"""Calls that send a signal; whether the third argument names it, else the second."""
CLONE_NEWUSER, CLONE_THREAD = 0x10000000, 0x10000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, F_SETFD, F_SETSIG = 1, 4, 2, 10

machines = pytest.mark.parametrize("machine", ARCHITECTURES)


@pytest.fixture(autouse=True)
def _machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "machine" in request.fixturenames:
        monkeypatch.setattr(platform, "machine", lambda: request.getfixturevalue("machine"))


def verdict(
    program: bytes, architecture: int, number: int, argument: int = 0, second: int = 0, third: int = 0
) -> int:
    """What the kernel would return: jumps only go forward, so this ends."""
    data = struct.pack("<IIQQQQ", number, architecture, 0, argument, second, third)
    code, accumulator, place = list(struct.iter_unpack("<HBBI", program)), 0, 0
    while True:
        operation, then, otherwise, value = code[place]
        place += 1
        if operation == 0x06:
            return int(value)
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
            continue
        if operation == 0x54:
            accumulator &= value
            continue
        holds = {0x15: accumulator == value, 0x45: accumulator & value != 0, 0x35: accumulator >= value}
        place += then if holds[operation] else otherwise


def refusing(
    machine: str, number: int, argument: int = 0, second: int = 0, third: int = 0, **settings: bool
) -> int | None:
    """The error that a call gets; None when it is allowed."""
    program = seccomp.program(unix_sockets=settings.pop("unix_sockets", False), **settings)
    answer = verdict(program, ARCHITECTURES[machine], number, argument, second, third)
    return None if answer == ALLOW else answer - ERRNO


@machines
def test_plain_calls_are_allowed(machine: str) -> None:
    assert refusing(machine, READ[machine]) is None
    assert refusing(machine, CLONE[machine], CLONE_THREAD) is None
    assert refusing(machine, KILL_CALL[machine]) is None


@machines
def test_sockets(machine: str) -> None:
    assert refusing(machine, SOCKET[machine], 1, unix_sockets=True) is None
    assert refusing(machine, SOCKET[machine], 1) == errno.EACCES
    assert refusing(machine, SOCKETPAIR[machine], 1) is None
    for family in (2, 10, 16, 17, 38, 40):
        assert refusing(machine, SOCKET[machine], family, unix_sockets=True) == errno.EACCES
        assert refusing(machine, SOCKETPAIR[machine], family) == errno.EACCES


@machines
def test_namespaces_and_signals(machine: str) -> None:
    assert refusing(machine, CLONE[machine], CLONE_NEWUSER | 17) == errno.EPERM
    assert refusing(machine, CLONE3) == errno.ENOSYS
    assert refusing(machine, KILL_CALL[machine], signals=False) == errno.EPERM


@machines
def test_nothing_inside_ends_by_sigkill_or_as_if_by_it(machine: str) -> None:
    for sender, third in SENDERS[machine].items():
        arguments = (5, 5, signal.SIGKILL) if third else (5, signal.SIGKILL, 0)
        assert refusing(machine, sender, *arguments) == errno.EPERM
        assert (
            refusing(machine, sender, *(signal.SIGTERM if a == signal.SIGKILL else a for a in arguments))
            is None
        )
    assert refusing(machine, CLONE[machine], signal.SIGKILL) == errno.EPERM
    for call in EXITS[machine]:
        assert refusing(machine, call, 137) == refusing(machine, call, 137 + 256) == KILL - ERRNO
        assert refusing(machine, call, 136) is refusing(machine, call, 9) is None
    assert refusing(machine, PRLIMIT[machine], 0, resource.RLIMIT_CPU, 0) is None
    for pointer in (0x7FFF12345678, 0x100, 1 << 40):
        assert refusing(machine, PRLIMIT[machine], 0, resource.RLIMIT_CPU, pointer) == errno.EPERM
        assert refusing(machine, PRLIMIT[machine], 0, resource.RLIMIT_NOFILE, pointer) is None
    assert refusing(machine, SETRLIMIT[machine], resource.RLIMIT_CPU) == errno.EPERM
    assert refusing(machine, SETRLIMIT[machine], resource.RLIMIT_NOFILE) is None


@machines
def test_no_signal_of_ones_choice_comes_later(machine: str) -> None:
    """A stopped job would go on when the kernel sends it SIGCONT."""
    assert refusing(machine, TIMER_CREATE[machine], 1, 0) is None
    for pointer in (0x7FFF12345678, 0x100, 1 << 40):
        assert refusing(machine, TIMER_CREATE[machine], 1, pointer) == errno.EPERM
    assert refusing(machine, MQ_NOTIFY[machine], 3) == errno.EPERM
    assert refusing(machine, FCNTL[machine], 3, F_SETSIG) == errno.EPERM
    assert refusing(machine, FCNTL[machine], F_SETSIG, F_SETFD) is None
    assert refusing(machine, CLONE[machine], signal.SIGCONT) == errno.EPERM
    assert refusing(machine, CLONE[machine], 0x4100 | signal.SIGCONT) == errno.EPERM
    assert refusing(machine, CLONE[machine], 0x1200000 | signal.SIGCHLD) is None
    assert refusing(machine, PRCTL[machine], PR_SET_PDEATHSIG, signal.SIGCONT) == errno.EPERM
    assert refusing(machine, PRCTL[machine], PR_SET_PDEATHSIG, signal.SIGKILL) is None
    assert refusing(machine, PRCTL[machine], 15, signal.SIGCONT) is None
    assert refusing(machine, PRCTL[machine], PR_SET_DUMPABLE) == errno.EPERM


@machines
def test_a_foreign_architecture_is_killed(machine: str) -> None:
    program = seccomp.program(unix_sockets=True)
    for foreign in {0x40000003, *ARCHITECTURES.values()} - {ARCHITECTURES[machine]}:
        assert verdict(program, foreign, READ[machine]) == KILL
    if machine == "x86_64":
        assert verdict(program, ARCHITECTURES[machine], 0x40000000 | 39) == KILL


@given(number=st.integers(0, 500), argument=st.integers(0, 2**64 - 1), upper=st.integers(0, 2**32 - 1))
def test_every_call_gets_a_verdict_that_the_upper_half_does_not_change(
    number: int, argument: int, upper: int
) -> None:
    program = seccomp.program(unix_sockets=True)
    native = ARCHITECTURES[platform.machine()]
    answer = verdict(program, native, number, argument)
    assert answer == ALLOW or answer - ERRNO in (errno.EPERM, errno.EACCES, errno.ENOSYS)
    assert answer == verdict(program, native, number, argument & 0xFFFFFFFF | upper << 32)


def test_an_unknown_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(SandboxError, match="riscv64"):
        seccomp.program(unix_sockets=True)
