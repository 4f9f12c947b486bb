"""Further baselines: the problem's model under torch.compile, each measured against the eager baseline.

A compiled model runs in a sandboxed process of its own, as the eager one does, with compilers in its reach:
the problem's author is trusted. It takes the candidate's part in the stopwatch, which gives eager / compiled.
That ratio says nothing about any candidate, so it is kept in the cache (`baselines/`) and used again as
long as the eager baseline is as fast as it was then. A candidate's speedup over the compiled model is its
speedup over the eager one divided by that ratio. docs/rationale/baselines.md has the rules.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch

from kernelproof.errors import SandboxError
from kernelproof.hashing import sha256_json
from kernelproof.types import Against, Check, CheckOutcome, Environment, Interval, Measurement, Rigor
from kernelproof.types.measurement import quotient_reach
from kernelproof.types.record import FrozenRecord
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.environment import loaded_files
from kernelproof.verifier.referee.inputs.problem import ProblemError
from kernelproof.verifier.referee.ledger import clean
from kernelproof.verifier.referee.timing import claim, stats
from kernelproof.verifier.referee.timing.pace import pace_unless
from kernelproof.verifier.referee.timing.rounds import Timed
from kernelproof.verifier.referee.timing.timed_outputs import Subject
from kernelproof.verifier.status_rules import Ended
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone, Equipment
from kernelproof.verifier.workers.shared_memory import SharedMemory
from kernelproof.wording import counted
from kernelproof.workspace import write_in_one_step

T = TypeVar("T")

FORMAT = 2
"""Raise it when the meaning of what is kept changes: everything is then measured anew."""
COMPILE_SECONDS = 300.0
"""Most seconds for compiling and warming up."""
SAME_EAGER = 0.03
"""The eager baseline counts as unchanged within 3 %, or within three times its own spread."""
PRECISE_ENOUGH = 2.0
"""A kept ratio may be so many times as uncertain as today's, or as was asked for."""
REFUSAL_LASTS = timedelta(days=1)
"""The time before a model that torch.compile could not compile is tried again."""
PROCESSES = 1024
COMPILED_ARENAS = ("inputs", "outputs", "baseline_weights")
"""It writes where the candidate does; its weights are those that no candidate could write to."""

Race = Callable[[Contestant], Timed]
"""Times a contestant, in the candidate's part, against the eager baseline."""


class NoBaseline(Exception):
    """There is no such baseline, and why. `lasting`: trying again would give the same."""

    def __init__(self, why: str, details: str = "", *, lasting: bool = False) -> None:
        super().__init__(why)
        self.details, self.lasting = details, lasting


class Compiled(FrozenRecord):
    """One compiled baseline against the eager one."""

    speedup: float
    """Eager time over compiled time."""
    speedup_interval: Interval
    eager_ms: float
    """The eager baseline in the same minutes."""
    aa_spread: float
    resolution: float
    graphs: int
    graph_breaks: int
    compile_seconds: float
    measured: str
    """UTC, ISO 8601."""
    sought: float
    """The half-width at which measuring would have ended."""
    most_seconds: float
    """When it would have ended in any case."""


class Refused(FrozenRecord):
    """Why there is no compiled baseline."""

    why: str
    details: str
    measured: str


class _Kept(FrozenRecord):
    """A file of the cache: what was found, and what it was found for."""

    identity: dict[str, Any]
    found: Compiled | Refused


@dataclass(frozen=True)
class ProcessSetup:
    """The memory, weights and compilers of a compiled model's process."""

    subject: Subject
    memory: SharedMemory
    weights: dict[str, dict[str, Any]]
    """Name to spec, in the arena `baseline_weights`."""
    seed: int
    """Of the weights."""
    toolchain: Toolchain


class CompiledBaselines:
    """The further baselines of one verification. Use it when the candidate's process has ended."""

    def __init__(self, cache: Path, environment: Environment, setup: ProcessSetup, race: Race) -> None:
        """`cache`: kernelproof's cache directory. `race`: runs the stopwatch; may raise what that raises."""
        self._folder = cache / "baselines"
        self._environment, self._setup, self._race = environment, setup, race

    def against(
        self, kind: str, measurement: Measurement, doubts: Sequence[str] = ()
    ) -> tuple[Against | None, Check]:
        """A measured candidate against the baseline of this kind (`compile`, `max-autotune`), with evidence.
        `doubts`: of `pace.doubts_about`, about the rounds of the measurement.

        None where there is no such baseline; the check then is not applicable and says why. Never raises for
        what a compiler or the model does.
        """
        found, cached = self._find(kind, measurement), True
        if found is None:
            found, cached = self._make(kind), False
        if isinstance(found, Refused):
            return None, _no_check(kind, found)
        rigor = self._setup.subject.settings.rigor
        against = through_eager(kind, measurement, found, rigor, doubts)
        return against, _check(kind, against, found, cached)

    def _find(self, kind: str, measurement: Measurement) -> Compiled | Refused | None:
        """What the cache holds, if it still holds true."""
        identity = self._identity(kind)
        try:
            kept = _Kept.model_validate_json(self._place(identity).read_bytes())
        except (OSError, ValueError):
            return None
        found = kept.found
        if isinstance(found, Refused):
            age = datetime.now(UTC) - datetime.fromisoformat(found.measured)
            return found if age < REFUSAL_LASTS else None
        settings = self._setup.subject.settings
        wanted = max(settings.half_width, _half_width(measurement.speedup_interval))
        precise = _half_width(found.speedup_interval) <= PRECISE_ENOUGH * wanted
        # To measure as hard again would give as wide an interval again.
        precise |= found.sought <= settings.half_width and found.most_seconds >= settings.most_seconds
        return found if precise and same_eager(measurement, found) else None

    def _make(self, kind: str) -> Compiled | Refused:
        try:
            made: Compiled | Refused = self._measure(kind)
        except NoBaseline as error:
            made = Refused(why=str(error), details=error.details, measured=_now())
            if not error.lasting:
                return made
        self._keep(kind, made)
        return made

    def _measure(self, kind: str) -> Compiled:
        settings = self._setup.subject.settings
        with started(self._setup) as contestant:
            seen = compile_in(contestant, kind, self._setup)
            timed = _guarded("timing it", lambda: self._race(contestant))
        if timed.bad is not None:
            why = f"{timed.bad.wrong} of {counted(timed.bad.count, 'element')} of an output wrong"
            raise NoBaseline(f"what torch.compile made computes something else: {why}", lasting=True)
        if timed.failure is not None:
            raise NoBaseline(f"what torch.compile made failed a check: {timed.failure}", lasting=True)
        measurement = claim.conclude(timed.rounds, backend=settings.backend, trusted=True)
        return Compiled(
            speedup=measurement.speedup,
            speedup_interval=measurement.speedup_interval,
            eager_ms=measurement.baseline_ms,
            aa_spread=measurement.aa_spread,
            resolution=measurement.resolution,
            graphs=seen["graphs"],
            graph_breaks=seen["graph_breaks"],
            compile_seconds=seen["seconds"],
            measured=_now(),
            sought=settings.half_width,
            most_seconds=settings.most_seconds,
        )

    def _keep(self, kind: str, outcome: Compiled | Refused) -> None:
        identity = self._identity(kind)
        kept = _Kept(identity=identity, found=outcome).model_dump_json(indent=1)
        with suppress(OSError):  # a cache that cannot be written only costs time
            self._folder.mkdir(parents=True, exist_ok=True)
            write_in_one_step(self._place(identity), kept.encode())

    def _place(self, identity: dict[str, Any]) -> Path:
        return self._folder / f"{sha256_json(identity)}.json"

    def _identity(self, kind: str) -> dict[str, Any]:
        """Everything that decides the ratio, as far as it is known."""
        loaded, settings = self._setup.subject.oracle.loaded, self._setup.subject.settings
        return {
            "format": FORMAT,
            "baseline": kind,
            "problem": loaded.problem.sha256,
            "size": [loaded.size, loaded.problem.sizes[loaded.size]],
            "backend": settings.backend,
            "numerics": settings.numerics,
            "threads": settings.threads,
            "environment": self._environment.fingerprint,
        }


def same_eager(measurement: Measurement, compiled: Compiled) -> bool:
    """Whether the eager baseline is as fast today as when `compiled` was measured."""
    allowed = max(SAME_EAGER, 3 * max(measurement.aa_spread, compiled.aa_spread))
    return abs(_drift(measurement, compiled)) <= allowed


def through_eager(
    kind: str, measurement: Measurement, compiled: Compiled, rigor: Rigor, doubts: Sequence[str] = ()
) -> Against:
    """The candidate against a compiled baseline, through the eager one that both were measured against.

    With s = eager / candidate and r = eager / compiled the speedup is s / r, and compiled takes today's eager
    time / r. On the logarithmic scale the half-widths of both intervals add in quadrature, and with them
    the change of the eager time between the two measurements: it is unknown how compiled moved meanwhile.
    What there is to doubt about eager / candidate (`doubts`), there is about the speedup.
    """
    down, up = quotient_reach(measurement, compiled, _drift(measurement, compiled))
    speedup = measurement.speedup / compiled.speedup
    logs = Interval(low=math.log(speedup) - down, high=math.log(speedup) + up)
    interval = stats.exponential(logs)
    resolution = max(measurement.resolution, compiled.resolution)
    inner = measurement.baseline_ms / (measurement.inside_ms or measurement.candidate_ms)
    highest = interval.high * max(1.0, inner / measurement.speedup_interval.high)
    pace, because = pace_unless(doubts, logs, resolution, highest, rigor)
    return Against(
        baseline=kind,
        baseline_ms=measurement.baseline_ms / compiled.speedup,
        speedup=speedup,
        speedup_interval=interval,
        pace=pace,
        unresolved_because=because or None,
        measured=compiled.measured,
    )


def equipment(toolchain: Toolchain, device: torch.device) -> Equipment:
    """What torch.compile needs in a sandbox: compilers, Python's headers and, for Triton, libcuda.

    Raises NoBaseline when this machine has no compiler.
    """
    lack = toolchain.lacks(cuda=False)
    if lack is not None or toolchain.cxx is None:
        raise NoBaseline(f"torch.compile has no compiler here: {lack}")
    # torch.compile uses its compilers in processes of its own for several kernels at a time; these need
    # semaphores in /dev/shm, which not every sandbox has, and would still be there when calls are timed.
    env = {"PATH": toolchain.search_path, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    usual = shutil.which("g++", path=toolchain.search_path)
    if usual is None or Path(usual).resolve() != Path(toolchain.cxx).resolve():
        env["CXX"] = toolchain.cxx
    if toolchain.ccbin is not None:
        env["CC"] = toolchain.ccbin
    if device.type == "cuda" and (libraries := _libcuda_directory()):
        env["TRITON_LIBCUDA_PATH"] = libraries
    cpu_s = max(3600.0, 2 * COMPILE_SECONDS * (os.cpu_count() or 1))
    return Equipment(toolchain.read_only_paths, env, processes=PROCESSES, cpu_s=cpu_s)


def started(setup: ProcessSetup) -> Contestant:
    """A process with compilers in its reach. Raises NoBaseline where there are none."""
    settings, device = setup.subject.settings, setup.subject.device
    tools = equipment(setup.toolchain, device)
    try:
        return Contestant(
            sides.no_builds,
            gpus=sides.gpus(device),
            memory_bytes=settings.memory_bytes,
            unsafe=settings.unsafe,
            equipment=tools,
        )
    except SandboxError as error:
        raise NoBaseline(f"its process could not be started: {error}") from None


def compile_in(contestant: Contestant, kind: str, setup: ProcessSetup) -> dict[str, Any]:
    """Loads, compiles and warms up the problem's model; returns graphs, graph breaks and seconds.

    Fills the slots with inputs that are drawn for it. Raises NoBaseline.
    """
    subject, memory = setup.subject, setup.memory
    loaded, settings, device = subject.oracle.loaded, subject.settings, subject.device

    def work() -> dict[str, Any]:
        for number, slot in enumerate(subject.slots):
            slot.fill(loaded.draw(setup.seed ^ number, device))
        weights, seed = setup.weights, setup.seed
        sides.seat_baseline(
            contestant, loaded, memory, weights, seed, settings, device, arenas=COMPILED_ARENAS
        )
        sides.settled(device)
        message = {"op": "compile", "kind": kind, "slots": [slot.arguments for slot in subject.slots]}
        return contestant.ask(message, seconds=COMPILE_SECONDS)

    seen = _guarded(f"compiling (at most {COMPILE_SECONDS:g} s)", work)
    if not seen["graphs"]:
        breaks = seen["graph_breaks"]
        raise NoBaseline(f"torch.compile found nothing to compile ({breaks} graph breaks)", lasting=True)
    return seen


def _guarded(doing: str, work: Callable[[], T]) -> T:
    """Turns any failure on the way to a baseline into `NoBaseline`."""
    try:
        return work()
    except ContestantFailed as error:
        why = f"{doing} failed: {_first_line(error)}"
        raise NoBaseline(why, clean(error.traceback), lasting=error.kind != "oom") from None
    except ContestantGone as error:
        details = clean(f"{error.outcome.stdout}\n{error.outcome.stderr}".strip())
        if error.timed_out:
            raise NoBaseline(f"{doing} took too long", details, lasting=True) from None
        raise NoBaseline(f"{doing}: its process was lost: {error}", details) from None
    except (Ended, ProblemError, torch.OutOfMemoryError) as error:
        raise NoBaseline(f"{doing} was not possible: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return clean(f"{error}\n".splitlines()[0])[:300]


def _libcuda_directory() -> str | None:
    """Where this process has libcuda from: Triton links against it, and need not find it by itself."""
    return next((str(file.parent) for file in loaded_files() if file.name.startswith("libcuda.so")), None)


def _half_width(ratio: Interval) -> float:
    return stats.half_width(Interval(low=math.log(ratio.low), high=math.log(ratio.high)))


def _drift(measurement: Measurement, compiled: Compiled) -> float:
    """How the eager baseline changed from `compiled` to today, as a log-ratio."""
    return math.log(measurement.baseline_ms / compiled.eager_ms)


def _check(kind: str, against: Against, compiled: Compiled, cached: bool) -> Check:
    low, high = against.speedup_interval.low, against.speedup_interval.high
    origin = f"measured {compiled.measured}" if cached else "measured now"
    seen = (
        f"{against.speedup:.3f} [{low:.3f}, {high:.3f}], {against.pace}; the compiled reference is "
        f"{compiled.speedup:.3f} times as fast as the eager one ({origin}), "
        f"{counted(compiled.graphs, 'graph')}, {counted(compiled.graph_breaks, 'graph break')}"
    )
    figures = {"cached": cached, "against": against.model_dump(mode="json")}
    figures["compiled"] = compiled.model_dump(mode="json")
    return Check(
        name=_name(kind), outcome=CheckOutcome.PASS, asked=_question(kind), seen=seen, figures=figures
    )


def _no_check(kind: str, refusal: Refused) -> Check:
    return Check(
        name=_name(kind),
        outcome=CheckOutcome.NOT_APPLICABLE,
        asked=_question(kind),
        seen=f"there is no such baseline: {refusal.why}",
        figures=refusal.model_dump(mode="json"),
    )


def _name(kind: str) -> str:
    return f"baseline: {kind}"


def _question(kind: str) -> str:
    mode = "default mode" if kind == "compile" else "mode max-autotune"
    return f"How fast is it beside the reference under torch.compile, {mode}?"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
