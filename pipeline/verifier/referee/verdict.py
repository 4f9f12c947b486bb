"""One verification, from a candidate's source to a verdict. `plan` has the stages.

`prepare` gets the referee ready while its first candidate is compiled: the processes for the first
candidates start, and the device's ceilings and the A/A spread of the day are measured, if the cache does not
hold them.
"""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch

from kernelproof.errors import KernelproofError
from kernelproof.types import Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.devices import gpu_health
from kernelproof.verifier.referee import ceilings, plan, sides
from kernelproof.verifier.referee.environment import describe_environment
from kernelproof.verifier.referee.inputs.problem import ProblemError
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.session import NOT_ENDED, Session, Tools, WarmState, alone
from kernelproof.verifier.referee.timing.measuring import aa_spread
from kernelproof.verifier.sandbox import on_cores
from kernelproof.verifier.status_rules import Cause, Ended, build_failure_override, has_other_kernels

DISORDER = {
    Status.CRASH: "a crash",
    Status.TIMEOUT: NOT_ENDED,
    Status.OUT_OF_MEMORY: "running out of memory",
    Status.RUNTIME_ERROR: "an error on the GPU",
}
"""After these a GPU is looked at before it is used again; after an error in forward if it was CUDA's."""
STOOD_STILL_S = 10.0
"""A canary that starts anew takes 3 s. After a timeout on a quiet machine it took 1.4 s at most;
on one whose processes waited for the driver, 15 s in the median (docs/rationale/devices.md)."""
BROKEN = 70
"""Exit code of a referee whose own CUDA context is of no more use: it is replaced, and the GPU looked at."""


def verify(request: VerifyRequest, tools: Tools) -> Verification:
    """Judges one candidate. Never raises for what a candidate or a problem does: that is in the record.

    Raises NeedsBuild where the build service does; MachineError for what this machine lacks, DeviceUnfit when
    the GPU no longer computes right.
    """
    ledger = Ledger(request)
    ledger.environment = describe_environment(torch.device(request.device))
    gpu = ledger.environment.gpu
    # Anything that runs on a GPU disturbs timing there; on a CPU only the timing itself is alone.
    with alone(gpu.uuid, ledger, tools) if gpu is not None else nullcontext():
        verdict = _verdict(request, ledger, tools)
        others = has_other_kernels(request.source, request.device, ledger.kernels)
        verdict = build_failure_override(verdict, ledger.build_failure(), has_others=others)
        if gpu is not None and _disorder(verdict):
            with ledger.stage("canary"):
                tools.progress("canary")
                verdict = confirmed(verdict, request.device, gpu.uuid, tools.warm)
    return ledger.close(verdict.status, verdict.reason, verdict.details)


def confirmed(verdict: Ended, device: str, uuid: str, warm: WarmState) -> Ended:
    """The verdict, once the GPU is known to be fit; another where its canary was as late as the candidate.

    Raises DeviceUnfit.
    """
    warm.cleanup.wait()
    began = time.monotonic()
    gpu_health.confirm(device, uuid, DISORDER[verdict.status], reserve=warm.canaries)
    seconds = time.monotonic() - began
    if verdict.status is not Status.TIMEOUT or seconds < STOOD_STILL_S:
        return verdict
    why = f"the machine stood still: {verdict.reason}, and a look at the GPU took {seconds:.0f} s afterwards"
    return Cause.STOOD_STILL.ended(why, verdict.details)


def _disorder(verdict: Ended) -> bool:
    ours = verdict.status is not Status.RUNTIME_ERROR
    return verdict.status in DISORDER and (ours or "CUDA" in verdict.reason + verdict.details)


def _verdict(request: VerifyRequest, ledger: Ledger, tools: Tools) -> Ended:
    session = Session(request, ledger, tools)
    try:
        plan.run(session)
        flags = ", ".join(sorted(ledger.flags))
        return Cause.NOTHING_FAILED.ended(f"every check passed{f'; {flags}' if flags else ''}")
    except Ended as ended:
        return session.blamed(ended)
    except ProblemError as error:
        return Cause.PROBLEM_FAILED.ended(f"the problem itself failed: {error}")
    except torch.OutOfMemoryError as error:
        why = f"the referee ran out of device memory: {error}"
        return session.blamed(Cause.REFEREE_FAILED.ended(why))
    except KernelproofError:
        raise
    except Exception as error:  # a bug of ours must cost one verification, not the referee
        _leave_if_broken(torch.device(request.device))
        why = f"a bug in the referee: {type(error).__name__}: {error}"
        return Cause.REFEREE_FAILED.ended(why, traceback.format_exc())
    finally:
        session.close()


def _leave_if_broken(device: torch.device) -> None:
    """Ends this process when CUDA answers it no more: no error can be cleared in a context that has one."""
    if device.type == "cuda":
        try:
            torch.cuda.synchronize(device)
        except RuntimeError:
            os._exit(BROKEN)


_PARALLEL = 1 << 22
"""Elements enough for torch to use several threads."""


def prepare(
    settings: VerifySettings,
    device: torch.device,
    cache: Path,
    warm: WarmState,
    progress: Callable[[str], None],
    *,
    more: bool,
) -> None:
    """Gets ready for candidates with these settings on a GPU, with cores kept for what is measured.

    `more`: several candidates are likely to come. Failures are ignored here: the candidate's own verification
    meets them again, and reports them.
    """
    environment, pool = describe_environment(device), warm.pool
    if environment.gpu is None:
        return

    def quiet_spread() -> float:
        warm.settle()
        return aa_spread(settings, device, pool)

    with contextlib.suppress(Ended, KernelproofError, torch.OutOfMemoryError):
        if more:
            pool.refill(sides.gpus(device), settings.memory_bytes, unsafe=settings.unsafe, count=pool.ahead)
        configure_torch(settings.threads, tf32=settings.numerics == "tf32")
        torch.ones(_PARALLEL).sum()  # torch starts its threads now, free to use all cores
        with warm.alone(environment.gpu.uuid, progress), on_cores(pool.shares.referee):
            ceilings.known(device, cache, environment, quiet_spread)
