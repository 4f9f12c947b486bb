"""What works on this machine: looked at by doing, with a remedy for what does not."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version

from kernelproof import backends
from kernelproof.db.store import open_if_there
from kernelproof.errors import KernelproofError, MachineError
from kernelproof.jobs import Job, Judge
from kernelproof.problems import open_suite
from kernelproof.types import Diagnosis, Status, VerifySettings
from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.devices import gpu_health, locks, quarantine
from kernelproof.verifier.devices.discovery import (
    Gpu,
    default_backend,
    environment_for,
    fleet,
    gpus,
    quarantined,
)
from kernelproof.verifier.engine.core_sharing import shares
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.sandbox import bwrap, probe, procfs
from kernelproof.verifier.sandbox.model import Tier
from kernelproof.verifier.sandbox.probe import container
from kernelproof.version import __version__
from kernelproof.wording import counted
from kernelproof.workspace import Workspace, cache_directory

AA_PROBLEM = "level1/2"
AA_SECONDS = 10.0
_SHARED = "a directory with mode 1777 and name it in KERNELPROOF_LOCKS"


def _good(name: str, seen: str, remedy: str = "", *, essential: bool = False) -> Diagnosis:
    return Diagnosis(name=name, ok=True, seen=seen, remedy=remedy, essential=essential)


def _bad(name: str, seen: str, remedy: str = "", *, essential: bool = False) -> Diagnosis:
    return Diagnosis(name=name, ok=False, seen=seen, remedy=remedy, essential=essential)


def examine(workspace: Workspace, *, noise: bool, unsafe: bool) -> list[Diagnosis]:
    """Everything `kernelproof doctor` reports, in the order in which it matters."""
    return list(_findings(workspace, noise, unsafe))


def _findings(workspace: Workspace, noise: bool, unsafe: bool) -> Iterator[Diagnosis]:
    yield _good("kernelproof", __version__)
    yield from _compilers()
    yield from _gpu()
    yield from _first_calls()
    yield from _guards()
    sandbox = _sandbox(unsafe)
    yield sandbox
    yield from _container(unsafe)
    yield _database(workspace)
    yield _endpoint()
    if noise and sandbox.ok:
        yield _noise(unsafe)


def _compilers() -> Iterator[Diagnosis]:
    try:
        toolchain = learn_toolchain(cache_directory())
    except KernelproofError as error:
        yield _bad("torch", str(error), "install torch 2.11 to 2.13 into this environment", essential=True)
        return
    kind = f"for CUDA {toolchain.torch_cuda}" if toolchain.torch_cuda else "for the CPU only"
    yield _good("torch", f"{toolchain.torch}, {kind}", essential=True)
    for name, cuda in (("c++", False), ("nvcc", True)):
        missing = toolchain.lacks(cuda=cuda)
        seen = (toolchain.nvcc_version if cuda else toolchain.cxx_version) or "found"
        yield Diagnosis(name=name, ok=not missing, seen=missing or seen, essential=not cuda, remedy="")


def _gpu() -> Iterator[Diagnosis]:
    if not gpus():
        others = " and ".join(each.name for each in backends.our_backends() if not each.on_gpu)
        remedy = f"the {others} backend works without one; CUDA candidates are built, not run"
        yield _bad("gpu", "no CUDA device", remedy)
        return
    import pynvml

    driver = pynvml.nvmlSystemGetDriverVersion()
    yield _good("gpu", f"{len(gpus())} x {gpus()[0].name}, driver {driver}")
    for gpu, record in quarantined():
        yield _bad(
            f"gpu {gpu.index}",
            f"quarantined since {record.since}: {record.reason} ({gpu.uuid})",
            f"{_mend(gpu)}; then `kernelproof doctor --lift-quarantine`",
        )
    for gpu in gpus():
        if errors := _memory_errors(gpu):
            yield _bad(f"gpu {gpu.index}", errors, _mend(gpu))


def _first_calls() -> Iterator[Diagnosis]:
    for each in backends.our_backends():
        if each.first_call is None:
            continue
        package, there = each.first_call.package, each.first_call.is_there
        seen = f"{version(package)}" if there else "not installed"
        if there and each.interpretable and not gpus():
            seen += ": kernels are interpreted here, for correctness only"
        if there and each.untried:
            seen += f": {each.untried}"
        yield Diagnosis(name=package, ok=there, seen=seen, remedy="" if there else each.missing)


def _mend(gpu: Gpu) -> str:
    return (
        f"look for `Xid` in the kernel's log and at `nvidia-smi -q -i {gpu.index}`; as root "
        f"`nvidia-smi --gpu-reset -i {gpu.index}` while nothing uses it, or restart the machine"
    )


def _memory_errors(gpu: Gpu) -> str:
    """What the GPU says of its own memory; empty when nothing, or when it keeps no such books."""
    import pynvml

    found = []
    with suppress(pynvml.NVMLError):
        kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        if errors := pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, since):
            found.append(f"{counted(errors, 'uncorrected memory error')} since the driver was loaded")
        if pynvml.nvmlDeviceGetRemappedRows(handle)[2]:
            found.append("memory rows wait for a reset to be replaced")
    return "; ".join(found)


def _guards() -> Iterator[Diagnosis]:
    """What keeps a measurement alone, and shows when it was not."""
    trouble = locks.trouble()
    yield Diagnosis(
        name="lock",
        ok=trouble is None,
        seen=trouble or f"{locks.directory()}, for all users of this host",
        remedy="" if trouble is None else f"without it two runs disturb each other; make {_SHARED}",
    )
    waits = procfs.waits_readable()
    yield Diagnosis(
        name="waits",
        ok=waits,
        seen="waiting for a core is seen" if waits else "this kernel has no usable /proc/PID/schedstat",
        remedy="" if waits else "other programs' load on the cores is not noticed: keep the machine quiet",
    )
    if gpus():
        unread = _unread_by_driver()
        yield Diagnosis(
            name="nvml",
            ok=not unread,
            seen=f"not readable: {', '.join(unread)}" if unread else "clocks, limits and users are readable",
            remedy="a GPU that slows down, or is used by others, is not noticed" if unread else "",
        )
    if fleet():
        yield _kept_cores()


def _kept_cores() -> Diagnosis:
    """Whether GPUs are measured on cores of their own."""
    mine = os.sched_getaffinity(0)
    kept = shares(len(fleet()), mine)
    gpus = counted(len(kept), "GPU")
    if all(share.measured for share in kept):
        own = sum(len(share.measured + share.referee) for share in kept)
        seen = f"{own} for {gpus}, the rest for builds"
        return _good("cores", seen)
    return _bad(
        "cores",
        f"{counted(len(mine), 'core')} for {gpus}: builds and measurements share them",
        "disturbed blocks are repeated, which takes time; with four cores for each GPU two are kept",
    )


def _unread_by_driver() -> list[str]:
    import pynvml

    questions = {
        "SM clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "what limits the clock": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons,
        "processes": pynvml.nvmlDeviceGetComputeRunningProcesses,
    }
    unread = []
    for what, ask in questions.items():
        try:
            ask(pynvml.nvmlDeviceGetHandleByUUID(gpus()[0].uuid))
        except pynvml.NVMLError:
            unread.append(what)
    return unread


def lift_quarantine(say: Callable[[str], None]) -> list[Diagnosis]:
    """Looks at every quarantined GPU again, and lifts the quarantine of those that pass the canary.

    `say` is called with the reason for a wait.
    """
    return [_looked_at_again(gpu, say) for gpu, _ in quarantined()] or [
        _good("quarantine", "no GPU is quarantined")
    ]


def _looked_at_again(gpu: Gpu, say: Callable[[str], None]) -> Diagnosis:
    name = "quarantine"
    with locks.held(gpu.uuid, say):
        trouble = gpu_health.check("cuda:0", environment=environment_for(gpu))
        if trouble is not None:
            return _bad(name, f"{gpu} stays: {trouble}", _mend(gpu))
        trouble = quarantine.lift(gpu.uuid)
    if trouble is not None:
        remedy = "ask the user who owns that file, or root"
        return _bad(name, f"{gpu} passed, but {trouble}", remedy)
    return _good(name, f"{gpu} passed the canary and may be used again")


def _sandbox(unsafe: bool) -> Diagnosis:
    try:
        confinement = probe(unsafe=unsafe)
    except KernelproofError as error:
        return _bad("sandbox", str(error), essential=True)
    stronger = "; ".join(confinement.refusals)
    return _good(
        "sandbox",
        f"tier {confinement.tier}",
        remedy=f"stronger tiers were refused: {stronger}" if stronger else "",
        essential=True,
    )


def _container(unsafe: bool) -> Iterator[Diagnosis]:
    """The container around us, and which of its options would give a stronger sandbox."""
    found = container()
    if found is None:
        return
    tier: Tier | None = None
    with suppress(KernelproofError):
        tier = probe(unsafe=unsafe).tier
    wanted = found.remedies(tier, bubblewrap=bwrap.find() is not None)
    reached = f"sandbox tier {tier}" if tier else "no sandbox works"
    yield Diagnosis(
        name="container",
        ok=not wanted,
        seen=f"{found.engine}; {reached}" if found.engine != "unknown" else reached,
        remedy=f"for a stronger tier: {'; '.join(wanted)}" if wanted else "",
    )


def _database(workspace: Workspace) -> Diagnosis:
    try:
        store = open_if_there(workspace.database)
        if store is None:
            return _good("database", f"{workspace.database} (made by the first run)")
        with store:
            last = store.latest_attempt_id()
    except KernelproofError as error:
        return _bad("database", str(error))
    return _good("database", f"{workspace.database}, {counted(last or 0, 'attempt')}")


def _endpoint() -> Diagnosis:
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
    key = os.environ.get("OPENAI_API_KEY")
    if not key and "OPENAI_BASE_URL" not in os.environ:
        return _bad(
            "model",
            "no OPENAI_API_KEY and no OPENAI_BASE_URL",
            "set them to ask a real model; replay:demo needs neither",
        )
    request = urllib.request.Request(f"{base}/models", headers={"Authorization": f"Bearer {key or 'none'}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return _good("model", f"{base} answers ({reply.status})")
    except urllib.error.HTTPError as error:
        seen = f"{base}: {error.code} {error.reason}"
        what = "the key in OPENAI_API_KEY" if error.code in (401, 403) else "the address (most end in /v1)"
        return _bad("model", seen, f"check {what}")
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return _bad("model", f"{base}: {reason}", "check the address and the network")


def _noise(unsafe: bool) -> Diagnosis:
    """A reference against itself: what this machine's clock cannot tell apart today."""
    backend = default_backend()
    settings = VerifySettings(
        backend=backend,
        size=backends.backend(backend).default_size,
        trials=1,
        measure_seconds=AA_SECONDS,
        own_kernel=False,
        unsafe=unsafe,
    )
    problem = open_suite().find(AA_PROBLEM)
    source = f"{problem.source}\n\nModelNew = Model\n"
    try:
        with Engine(unsafe=unsafe) as engine:
            verdict = Judge(engine).judge(Job.of_text(source, problem, settings)).verification
    except MachineError as error:
        return _bad("noise", str(error))
    assert verdict is not None
    measured = verdict.measurement
    if verdict.status is not Status.CORRECT or measured is None:
        return _bad("noise", f"{verdict.status}: {verdict.reason}")
    interval = measured.speedup_interval
    return _good(
        "noise",
        f"{problem.id} against itself: {measured.speedup:.4f} [{interval.low:.4f}, {interval.high:.4f}], "
        f"{measured.pace}; differences below {measured.resolution:.1%} are not claimed here now",
    )
