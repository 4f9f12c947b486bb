"""The engine: everything between a candidate's source and its verification, on this machine.

Policy, build and referee in a row. Builds run in as many threads as callers bring; each referee, one for a
GPU, takes a candidate when it is done with the last. A referee that is lost is replaced, and its candidate
tried again; so is one whose GPU failed its canary, on another GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from kernelproof.backends import backend
from kernelproof.errors import DeviceUnfit, MachineError, UsageError
from kernelproof.hashing import sha256_text
from kernelproof.pysource import compiles_itself
from kernelproof.types import (
    Build,
    BuildRequest,
    BuildState,
    Check,
    Environment,
    Finding,
    Problem,
    Verification,
    VerifySettings,
)
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import compiler_output, find_tools
from kernelproof.verifier.devices import gpu_health, locks
from kernelproof.verifier.devices.discovery import (
    device_for,
    environment_for,
    interprets,
    minor_number,
    set_aside,
)
from kernelproof.verifier.engine.build_stage import BuildStage, Prebuilt
from kernelproof.verifier.engine.core_sharing import Cores, builds_at_once, measured_threads
from kernelproof.verifier.engine.referee_process import HandedBack, OnStage, RefereeLost, RefereeProcess
from kernelproof.verifier.engine.referees import Referees
from kernelproof.verifier.engine.sanitizers import Sanitizing, with_checks
from kernelproof.verifier.engine.stop import Stop, ended_later
from kernelproof.verifier.policy import review
from kernelproof.verifier.sandbox import Group, sweep
from kernelproof.verifier.status_rules import (
    BUILD_CAUSES,
    Cause,
    Ended,
    cause_without_device,
    deciding_builds,
    ended_by_review,
)
from kernelproof.version import VERIFIER
from kernelproof.workspace import cache_bound, cache_directory


def ended_early(
    request: VerifyRequest, ended: Ended, findings: tuple[Finding, ...] = (), prebuilt: Prebuilt | None = None
) -> Verification:
    """The record of a candidate that ended so before a referee saw it."""
    return Verification(
        status=ended.status,
        reason=ended.reason,
        problem_id=request.problem.id,
        problem_sha256=request.problem.sha256,
        candidate_sha256=sha256_text(request.source),
        settings=request.settings,
        findings=findings,
        builds=prebuilt.builds if prebuilt else (),
        sandbox=prebuilt.sandbox if prebuilt else None,
        details=ended.details[:20_000],
        verifier=VERIFIER,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


MAX_TRIES = 3
"""A verification that fails for our reasons is tried this often before it is recorded as such."""
MAX_HANDED_BACK = 16
"""The number of times that a candidate gives the device back for a build. Then compilers run while it has
the device."""
STOPPED_SECONDS = 20.0
"""So long a referee may go on with a candidate whose caller has asked for the end. Then it is ended, too: a
new one takes half of that."""
MAX_GPUS = 2
"""A candidate after which so many GPUs failed their canary is not let near another by this engine."""


class Engine:
    """Verifies candidates. Thread-safe; use as a context manager, so that no process outlives it."""

    def __init__(
        self,
        cache: Path | None = None,
        *,
        unsafe: bool = False,
        builders: int = 0,
        many: bool = False,
    ) -> None:
        """`builders`: candidates built at the same time; 0: as many as the cores serve well. `many`:
        processes for the next candidate are kept ready.

        Raises UsageError for a malformed KERNELPROOF_CACHE_BYTES.
        """
        cache_bound()  # told now, not by the first build
        self._many = many
        self._cache = cache or cache_directory()
        self._referees = Referees(self._cache)
        building = self._referees.others
        self._jobs = Group(building, in_turn=True)
        known = (builders, builders) if builders else builds_at_once(len(building or os.sched_getaffinity(0)))
        self._cores = Cores(*known)
        self.builds = BuildStage(self._cache, self._jobs, self._cores, building, unsafe=unsafe)
        self._environment: Environment | None = None
        self._gpus_lost: dict[str, list[str]] = {}
        """How each failed after a candidate, by its hash: to verify it again costs no more of them."""
        self._closed = False
        sweep()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the referees, builds and whatever they run; a verification in another thread ends too."""
        self._closed = True
        self._cores.close()
        self._jobs.close()
        self._referees.close()

    @property
    def busy_share(self) -> float | None:
        """Part of their time in which the referees had a candidate; None before the first one started."""
        return self._referees.busy_share

    def environment(self, settings: VerifySettings) -> Environment:
        """This machine, as verifications record it."""
        if self._environment is None:
            device = device_for(settings.backend) or "cpu"
            self.builds.require_cache()
            self._environment = self._referees.one(device).environment(device)
        return self._environment

    def verify(
        self,
        source: str,
        problem: Problem,
        settings: VerifySettings,
        on_stage: OnStage = lambda _: None,
        stop: Stop | None = None,
        prebuilt: Prebuilt | None = None,
    ) -> Verification:
        """One candidate's verification. A candidate's failure is its status, never an exception.

        `prebuilt`: the result of its build stage, where that is known; its libraries lie in this cache.

        Raises UsageError for a size the problem has not, or a problem whose own code fails; MachineError
        for what this machine lacks; Stopped when `stop` is asked: at once where the candidate waits or is
        built, STOPPED_SECONDS later at most where a referee has it.
        """
        stop = stop or Stop()
        settings = _in_numbers(settings)
        request = VerifyRequest(problem=problem, source=source, settings=settings, device="cpu")
        findings = review(source, problem, settings.backend)
        ended = ended_by_review(findings)
        if ended is not None:
            return ended_early(request, ended, findings)
        self.builds.require_cache()
        device = device_for(settings.backend) or "cpu"
        request = request.model_copy(update={"device": device})
        with self._referees.expected(device, self._readying(request)):  # one starts while the build runs
            began = time.monotonic()
            if prebuilt is None:
                with self.builds.place(on_stage, stop):
                    prebuilt = self.builds.build(source, problem, settings)
            if self._closed:
                raise RefereeLost("the engine was closed")
            self.builds.require_compilers(prebuilt.builds, settings)
            build_seconds = round(time.monotonic() - began, 3)
            verdict = self._after_build(request, prebuilt, findings)
            if verdict is None:
                if prebuilt.first_calls is not None:
                    first = prebuilt.first_calls
                    update = {"first_calls": first.library, "compiled_ahead": not first.log}
                    request = request.model_copy(update=update)
                made = dict(prebuilt.contents)
                verdict = self._referee_verdict(request, made, on_stage, stop)
                self.builds.require_compilers(verdict.builds, settings)
                builds = with_origin(verdict.builds, [*prebuilt.builds, *made.values()]) or prebuilt.builds
            else:
                builds = prebuilt.builds
            builds += (prebuilt.first_calls,) if prebuilt.first_calls is not None else ()
        stages = {"build": build_seconds, **verdict.stage_seconds}
        return verdict.model_copy(update={"findings": findings, "stage_seconds": stages, "builds": builds})

    def sanitize(
        self,
        source: str,
        problem: Problem,
        verification: Verification,
        on_stage: OnStage = lambda _: None,
        stop: Stop | None = None,
    ) -> Verification:
        """The verification of a candidate with the checks of one more call under sanitizers, and their flags.
        Status and times stay as they are; a sanitizer that fails is a check that is not applicable.

        Raises MachineError for a sanitizer that is not installed; RefereeLost, Stopped as `verify` does.
        """
        name, began, checks = verification.settings.backend, time.monotonic(), list[Check]()
        on_gpu = backend(name).on_gpu and not interprets(name)
        stop, device = stop or Stop(), device_for(name)
        with self.builds.place(on_stage, stop):
            on_stage("sanitize")
            sanitizing = Sanitizing(self.builds.builder, self._jobs)
            if not on_gpu or device is None:
                checks += sanitizing.checks(source, problem, verification)
                return with_checks(verification, checks, time.monotonic() - began)
            with self._referees.reserved(device, stop) as referee:
                assert referee.gpu is not None
                gpu, environment = referee.gpu, environment_for(referee.gpu)
                after = partial(gpu_health.confirm, device, gpu.uuid, "a sanitizer's run", environment)
                sanitizing = replace(sanitizing, gpus=(minor_number(gpu),), after=after)
                try:
                    with locks.held(gpu.uuid, on_stage):
                        checks.extend(sanitizing.checks(source, problem, verification))
                except DeviceUnfit as error:
                    self._give_up(referee, str(error))
        return with_checks(verification, checks, time.monotonic() - began)

    def _after_build(
        self, request: VerifyRequest, prebuilt: Prebuilt, findings: tuple[Finding, ...]
    ) -> Verification | None:
        """The verdict, where the build stage already decides it."""
        ended = _ended_by_build(prebuilt, request.source, device_for(request.settings.backend))
        if ended is None:
            return None
        verdict = ended_early(request, ended, findings, prebuilt)
        return verdict.model_copy(update={"environment": self.environment(verdict.settings)})

    def _referee_verdict(
        self, request: VerifyRequest, builds: dict[str, Build], on_stage: OnStage, stop: Stop
    ) -> Verification:
        """The referee's verdict. `builds`: what was built for it, by content; more is added when it is handed
        back."""
        trouble, tries, handed_back, lost_s = "", 0, 0, 0.0
        candidate = sha256_text(request.source)
        lost = self._gpus_lost.get(candidate, [])
        while tries < MAX_TRIES:
            if self._closed:
                raise RefereeLost("the engine was closed")
            stop.check()
            if len(lost) >= MAX_GPUS:
                why = f"after it {len(lost)} GPUs failed their canary; the last: {lost[-1]}"
                return ended_early(request, Cause.GPUS_LOST.ended(why))
            began = time.monotonic()
            try:
                verdict = self._before_referee(request, builds, on_stage, stop, handed_back < MAX_HANDED_BACK)
            except HandedBack as error:
                handed_back += 1
                lost_s += time.monotonic() - began
                self._build_outside(error.request, request.settings, builds, on_stage, stop)
                continue
            except RefereeLost as error:
                trouble = str(error)
                tries += 1
                continue
            except DeviceUnfit as error:
                lost = self._gpus_lost.setdefault(candidate, lost)
                lost.append(str(error))
                device_for(request.settings.backend)  # raises MachineError when no healthy GPU is left
                continue
            self._environment = verdict.environment or self._environment
            if not handed_back:
                return verdict
            stages = {**verdict.stage_seconds, "handed_back": round(lost_s, 3)}
            return verdict.model_copy(update={"stage_seconds": stages})
        return ended_early(request, Cause.REFEREE_LOST.ended(f"{trouble}, {MAX_TRIES} times"))

    def _before_referee(
        self, request: VerifyRequest, builds: dict[str, Build], on_stage: OnStage, stop: Stop, hand_back: bool
    ) -> Verification:
        """One try. Raises HandedBack, RefereeLost, DeviceUnfit, Stopped."""
        on_stage("queued")
        alone = self._cores.measuring(stop) if request.device == "cpu" else nullcontext()
        with alone, self._referees.reserved(request.device, stop) as referee:
            stop.begin()
            try:
                with ended_later(stop, STOPPED_SECONDS, partial(self._replace, referee)):
                    return self._ask_referee(referee, request, builds, on_stage, hand_back)
            except DeviceUnfit as error:
                self._give_up(referee, str(error))  # before another candidate takes it
                raise

    def _build_outside(
        self,
        wanted: BuildRequest,
        settings: VerifySettings,
        builds: dict[str, Build],
        on_stage: OnStage,
        stop: Stop,
    ) -> None:
        """Builds what a referee met, while it has another candidate."""
        with self.builds.place(on_stage, stop):
            build = self.builds.builder.build(wanted, seconds=settings.build_seconds)
        builds[wanted.content_sha256] = build

    def _ask_referee(
        self,
        referee: RefereeProcess,
        request: VerifyRequest,
        builds: dict[str, Build],
        on_stage: OnStage,
        hand_back: bool,
    ) -> Verification:
        """The referee's verdict. One that is lost is replaced, and its GPU looked at: it may hang there."""
        cores = self._referees.shares_of(referee, request.device)
        toolchain = self.builds.builder.toolchain
        try:
            return referee.verify(
                request, toolchain, on_stage, more=self._many, cores=cores, builds=builds, hand_back=hand_back
            )
        except RefereeLost:
            self._replace(referee)
            if referee.gpu is not None and request.device != "cpu" and not self._closed:
                with locks.held(referee.gpu.uuid, on_stage):
                    environment = environment_for(referee.gpu)
                    gpu_health.confirm(request.device, referee.gpu.uuid, "the loss of a referee", environment)
            raise

    def _readying(self, request: VerifyRequest) -> Callable[[RefereeProcess], None] | None:
        """The preparation of a new referee while the first candidate is built: on a GPU it measures what is
        needed once. None where compilers may take the cores of measurements."""
        if request.device == "cpu" or not request.settings.measure or not self._referees.others:
            return None

        def ready(referee: RefereeProcess) -> None:
            cores = self._referees.shares_of(referee, request.device)
            try:
                referee.prepare(request, more=self._many, cores=cores)
            except DeviceUnfit as error:
                self._give_up(referee, str(error))
            except RefereeLost:
                self._replace(referee)
            except (UsageError, MachineError):  # the candidate is told that
                pass

        return ready

    def _replace(self, lost: RefereeProcess) -> None:
        self._environment = None
        self._referees.replace(lost)

    def _give_up(self, referee: RefereeProcess, reason: str) -> None:
        """Never uses the referee's GPU again."""
        if referee.gpu is not None:
            set_aside(referee.gpu.uuid, reason)
        self._replace(referee)


def _ended_by_build(prebuilt: Prebuilt, source: str, device: str | None) -> Ended | None:
    """How the build stage ends a candidate; None where it goes on."""
    first = prebuilt.first_calls
    if first is not None and prebuilt.refused and first.state is not BuildState.OK:
        return BUILD_CAUSES[first.state].ended(prebuilt.refused, prebuilt.trouble)
    failed = deciding_builds(prebuilt.builds, prebuilt.raised, has_others=compiles_itself(source))
    failure = compiler_output.ended_by_builds(failed)
    if failure is not None or device is not None:
        return failure
    cause = cause_without_device(prebuilt.builds, prebuilt.trouble)
    return cause.ended("this machine has no CUDA device to run it on", prebuilt.trouble)


def with_origin(requested: Sequence[Build], built: Sequence[Build]) -> tuple[Build, ...]:
    """The builds that a referee asked for, with the records of those that were made before."""
    by_key = {build.key: build for build in built}
    return tuple(by_key.get(build.key, build) for build in requested)


def _in_numbers(settings: VerifySettings) -> VerifySettings:
    """The settings as they are recorded: with what this machine decides, so that another can do the same."""
    if settings.measure and interprets(settings.backend):
        settings = settings.model_copy(update={"measure": False})
    if settings.threads or not backend(settings.backend).counts_threads:
        return settings
    return settings.model_copy(update={"threads": measured_threads()})


def require_device(name: str) -> None:
    """Raises MachineError when a backend can neither run nor build here; says how to get the rest."""
    wanted = backend(name)
    if not wanted.is_installed:
        raise MachineError(wanted.missing)
    if device_for(name) is None and not (wanted.needs_nvcc and find_tools().nvcc is not None):
        raise MachineError(wanted.missing)
