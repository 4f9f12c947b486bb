"""What works on this machine: looked at by doing, with a remedy for what does not."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator

from db.store import open_store
from pipeline.build import learn_toolchain
from pipeline.errors import KernelproofError
from pipeline.execution.devices import default_backend, device_for, gpu_count
from pipeline.execution.engine import Engine
from pipeline.nouns import Diagnosis, Status, VerifySettings
from pipeline.problems import open_suite
from pipeline.sandbox import probe
from pipeline.version import __version__
from pipeline.workspace import Workspace, cache_directory

AA_PROBLEM = "level1/2"
AA_SECONDS = 10.0


def examine(workspace: Workspace, *, noise: bool, unsafe: bool) -> list[Diagnosis]:
    """Everything `kernelproof doctor` reports, in the order in which it matters."""
    return list(_findings(workspace, noise, unsafe))


def _findings(workspace: Workspace, noise: bool, unsafe: bool) -> Iterator[Diagnosis]:
    yield Diagnosis(name="kernelproof", ok=True, seen=__version__)
    yield from _compilers()
    yield _gpu()
    sandbox = _sandbox(unsafe)
    yield sandbox
    yield _database(workspace)
    yield _endpoint()
    if noise and sandbox.ok:
        yield _noise(unsafe)


def _compilers() -> Iterator[Diagnosis]:
    try:
        toolchain = learn_toolchain(cache_directory())
    except KernelproofError as error:
        yield Diagnosis(
            name="torch",
            ok=False,
            seen=str(error),
            remedy="install torch 2.11 to 2.13 into this environment",
            essential=True,
        )
        return
    kind = f"for CUDA {toolchain.torch_cuda}" if toolchain.torch_cuda else "for the CPU only"
    yield Diagnosis(name="torch", ok=True, seen=f"{toolchain.torch}, {kind}", essential=True)
    for name, cuda in (("c++", False), ("nvcc", True)):
        missing = toolchain.lacks(cuda=cuda)
        seen = (toolchain.nvcc_version if cuda else toolchain.cxx_version) or "found"
        yield Diagnosis(name=name, ok=not missing, seen=missing or seen, essential=not cuda, remedy="")


def _gpu() -> Diagnosis:
    count = gpu_count()
    if not count:
        return Diagnosis(
            name="gpu",
            ok=False,
            seen="no CUDA device",
            remedy="the cpp backend works without one; CUDA candidates are built, not run",
        )
    import pynvml

    name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
    driver = pynvml.nvmlSystemGetDriverVersion()
    return Diagnosis(name="gpu", ok=True, seen=f"{count} x {name}, driver {driver}")


def _sandbox(unsafe: bool) -> Diagnosis:
    try:
        confinement = probe(unsafe=unsafe)
    except KernelproofError as error:
        return Diagnosis(name="sandbox", ok=False, seen=str(error), essential=True)
    stronger = "; ".join(confinement.refusals)
    return Diagnosis(
        name="sandbox",
        ok=True,
        seen=f"tier {confinement.tier}",
        remedy=f"stronger tiers were refused: {stronger}" if stronger else "",
        essential=True,
    )


def _database(workspace: Workspace) -> Diagnosis:
    if not workspace.database.exists():
        return Diagnosis(name="database", ok=True, seen=f"{workspace.database} (made by the first run)")
    try:
        with open_store(workspace.database, create=False) as store:
            last = store.latest_attempt_id()
    except KernelproofError as error:
        return Diagnosis(name="database", ok=False, seen=str(error))
    return Diagnosis(name="database", ok=True, seen=f"{workspace.database}, {last or 0} attempts")


def _endpoint() -> Diagnosis:
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
    key = os.environ.get("OPENAI_API_KEY")
    if not key and "OPENAI_BASE_URL" not in os.environ:
        return Diagnosis(
            name="model",
            ok=False,
            seen="no OPENAI_API_KEY and no OPENAI_BASE_URL",
            remedy="set them to ask a real model; replay:demo needs neither",
        )
    request = urllib.request.Request(f"{base}/models", headers={"Authorization": f"Bearer {key or 'none'}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return Diagnosis(name="model", ok=True, seen=f"{base} answers ({reply.status})")
    except urllib.error.HTTPError as error:
        seen = f"{base}: {error.code} {error.reason}"
        what = "the key in OPENAI_API_KEY" if error.code in (401, 403) else "the address (most end in /v1)"
        return Diagnosis(name="model", ok=False, seen=seen, remedy=f"check {what}")
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return Diagnosis(
            name="model", ok=False, seen=f"{base}: {reason}", remedy="check the address and the network"
        )


def _noise(unsafe: bool) -> Diagnosis:
    """A reference against itself: what this machine's clock cannot tell apart today."""
    backend = default_backend()
    settings = VerifySettings(
        backend=backend,
        size="full" if device_for("cuda") else "small",
        trials=1,
        measure_seconds=AA_SECONDS,
        own_kernel=False,
        unsafe=unsafe,
    )
    problem = open_suite().find(AA_PROBLEM)
    source = f"{problem.source}\n\nModelNew = Model\n"
    with Engine(unsafe=unsafe) as engine:
        verdict = engine.verify(source, problem, settings)
    measured = verdict.measurement
    if verdict.status is not Status.CORRECT or measured is None:
        return Diagnosis(name="noise", ok=False, seen=f"{verdict.status}: {verdict.reason}")
    interval = measured.speedup_interval
    return Diagnosis(
        name="noise",
        ok=True,
        seen=(
            f"{problem.id} against itself: {measured.speedup:.4f} [{interval.low:.4f}, {interval.high:.4f}], "
            f"{measured.pace}; differences below {measured.resolution:.1%} are not claimed here now"
        ),
    )
