"""Sanitizers: one untimed call of a candidate that was judged, under a tool that watches its memory.

    kernelproof verify relu.py --problem level1/1 --sanitize

A C++ candidate is built once more, with AddressSanitizer and UndefinedBehaviorSanitizer in it. On a GPU its
process is started by compute-sanitizer, once for each of its tools. It runs in a candidate's sandbox. What
comes of it is a check and a flag, and never changes status or times. What the tools print passes through the
candidate's process or beside its words, so it is a hint for people: a candidate can hide from a sanitizer, or
accuse itself.

The call is made at the declared size. Where that takes too long, and the verification has seen the candidate
right at another batch, it is made on the first `BATCH` elements: another candidate may be out of bounds there
for no other reason than that it is made for the declared size.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kernelproof.backends import backend
from kernelproof.choices import Flag
from kernelproof.errors import KernelproofError, MachineError
from kernelproof.types import (
    Build,
    BuildRequest,
    BuildState,
    Check,
    CheckOutcome,
    Problem,
    Verification,
    VerifySettings,
)
from kernelproof.types.verification import SANITIZER
from kernelproof.verifier.build import Builder, find_tools
from kernelproof.verifier.devices.discovery import interprets
from kernelproof.verifier.engine.build_stage import as_problem_says
from kernelproof.verifier.sandbox import Group
from kernelproof.verifier.status_rules import NEVER_CALLED
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone, Equipment, hello

SECONDS = 60.0
"""Most seconds of each step of a run: a kernel may take a hundred times as long as by itself."""
BATCH = 4
QUESTION = "Does a sanitizer see no fault in its use of memory and threads?"
_LINES, _LINE = 6, 200
"""Lines of evidence that are kept of a run, and characters of each."""


@dataclass(frozen=True)
class Report:
    """One thing that a tool said."""

    flag: Flag
    line: str
    """What and where. Untrusted text."""


@dataclass(frozen=True)
class Sanitizer:
    """A tool, and how a candidate is run under it."""

    name: str
    equipment: Equipment
    reports: Callable[[str], Iterator[Report]]
    """Reads what its process printed."""
    flags: tuple[str, ...] = ()
    """For the compiler and the linker of the candidate's extensions."""
    finished: str = ""
    """What the tool prints when it comes to its end; empty where it need not."""


def sanitizers_for(name: str) -> tuple[Sanitizer, ...]:
    """The tools for a backend's candidates; none where its kernels are interpreted.

    Raises MachineError where they are not installed.
    """
    if interprets(name):
        return ()
    if backend(name).on_gpu:
        return tuple(map(_compute_sanitizer, ("memcheck", "racecheck", "initcheck", "synccheck")))
    return (_address_sanitizer(),)


@dataclass(frozen=True)
class Run:
    """What came of one run."""

    reports: tuple[Report, ...] = ()
    trouble: str = ""
    """Why it did not come to its end, if it did not."""
    timed_out: bool = False


@dataclass(frozen=True)
class Sanitizing:
    """The runs of one candidate on this machine."""

    builder: Builder
    jobs: Group
    gpus: tuple[int, ...] = ()
    """Minor numbers of the devices that it gets."""
    after: Callable[[], None] = field(default=lambda: None)
    """Called after a run whose process ended before it should. May raise KernelproofError."""

    def checks(self, source: str, problem: Problem, verification: Verification) -> Iterator[Check]:
        """A check for each tool, `not_applicable` where it could not be run.

        Raises MachineError where a tool is missing, and what `after` raises.
        """
        name = verification.settings.backend
        tools, why = sanitizers_for(name), ""
        if not tools:
            yield _check("all", CheckOutcome.NOT_APPLICABLE, "not run: its kernels are interpreted here")
        if verification.status in NEVER_CALLED:
            why = f"not run: it ended as {verification.status}, before any call"
        for tool in tools:
            yield _skipped(tool, why) if why else self._check(tool, source, problem, verification)

    def _check(self, tool: Sanitizer, source: str, problem: Problem, verification: Verification) -> Check:
        began, where = time.monotonic(), "at the declared size"
        run = self._run(tool, source, problem, verification.settings, None)
        if run.timed_out and (batch := other_batch(verification)) is not None:
            where = f"on the first {batch} elements of the batch, as {run.trouble} at the declared size"
            run = self._run(tool, source, problem, verification.settings, batch)
        figures: dict[str, Any] = {"seconds": round(time.monotonic() - began, 1)}
        if not run.reports:
            if run.trouble:
                return _skipped(tool, f"not run to its end: {run.trouble}", figures)
            return _check(tool.name, CheckOutcome.PASS, f"clean, {where}", figures)
        classes = list(dict.fromkeys(report.flag.value for report in run.reports))
        lines = list(dict.fromkeys(report.line for report in run.reports))[:_LINES]
        figures |= {"classes": classes, "evidence": lines, "reports": len(run.reports)}
        return _check(
            tool.name, CheckOutcome.FAIL, f"{', '.join(classes)}, {where}: {'; '.join(lines)}", figures
        )

    def _run(
        self, tool: Sanitizer, source: str, problem: Problem, settings: VerifySettings, batch: int | None
    ) -> Run:
        def build(request: BuildRequest) -> Build:
            update = {
                "extra_cflags": (*request.extra_cflags, *tool.flags),
                "extra_ldflags": (*request.extra_ldflags, *tool.flags),
            }
            wanted = request.model_copy(update=update) if tool.flags else request
            return self.builder.build(wanted, seconds=settings.build_seconds)

        try:
            it = Contestant(
                build,
                gpus=self.gpus,
                memory_bytes=settings.memory_bytes,
                unsafe=settings.unsafe,
                jobs=self.jobs,
                equipment=tool.equipment,
            )
        except KernelproofError as error:
            return Run(trouble=f"its process did not start: {error}")
        trouble, gone = "", None
        with it:
            try:
                self._call(it, source, problem, settings, batch)
            except ContestantFailed as error:
                trouble = f"it raised {error}"
            except ContestantGone as error:
                gone = error
                trouble = f"it took longer than {SECONDS:.0f} s" if error.timed_out else f"{error}"
            outcome = it.end()
            failed = [made for made in it.builds if made.state is not BuildState.OK]
        if gone is not None:
            self.after()
        said = f"{outcome.stdout}\n{outcome.stderr}"
        reports = tuple(tool.reports(said))
        if failed and len(failed) == len(it.builds):
            trouble = f"{failed[0].name} was not built for it: {failed[0].log.strip()[-_LINE:]}"
        if not trouble and tool.finished not in said:
            trouble = f"{tool.name} did not come to its end: {said.strip()[-_LINE:]}"
        return Run(reports, _line(trouble), gone is not None and gone.timed_out)

    def _call(
        self, it: Contestant, source: str, problem: Problem, settings: VerifySettings, batch: int | None
    ) -> None:
        first = hello(settings, "cuda:0" if self.gpus else "cpu")
        once = as_problem_says("once", problem, settings) | {"batch": batch}
        it.wait_ready()
        for message in (first, {"op": "load", "source": source, "seed": 0}, once):
            it.ask(message, seconds=SECONDS)


def other_batch(verification: Verification) -> int | None:
    """`BATCH`, where the candidate was right at another batch than the problem's, and that is larger."""
    right = any(
        check.name.startswith("probe: batch ") and check.outcome is CheckOutcome.PASS
        for check in verification.checks
    )
    shape = verification.inputs[0].get("shape") if verification.inputs else None
    if not right or Flag.SHAPE_SPECIALISED in verification.flags or not shape:
        return None
    return BATCH if shape[0] > BATCH else None


def with_checks(verification: Verification, checks: list[Check], seconds: float) -> Verification:
    """The verification with these checks of sanitizers, and the flags that they give."""
    flags = {Flag(each) for check in checks for each in check.figures.get("classes", ())}
    return verification.model_copy(
        update={
            "checks": (*verification.checks, *checks),
            "flags": tuple(sorted({*verification.flags, *flags})),
            "stage_seconds": {**verification.stage_seconds, "sanitize": round(seconds, 3)},
        }
    )


def is_sanitized(verification: Verification) -> bool:
    """Whether sanitizers were asked for it."""
    return any(check.name.startswith(SANITIZER) for check in verification.checks)


def _check(tool: str, outcome: CheckOutcome, seen: str, figures: dict[str, Any] | None = None) -> Check:
    return Check(name=f"{SANITIZER}{tool}", outcome=outcome, asked=QUESTION, seen=seen, figures=figures or {})


def _skipped(tool: Sanitizer, why: str, figures: dict[str, Any] | None = None) -> Check:
    return _check(tool.name, CheckOutcome.NOT_APPLICABLE, why, figures)


def _line(text: str) -> str:
    """One short line of printable characters, without addresses and folders, which differ from run to run."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(_DIFFERS.sub("", plain).split())[:_LINE]


_DIFFERS = re.compile(r"\b0x[0-9a-f]{6,}\b|(?<!\S)/\S*/(?=[^/\s]+:\d)")


_ASAN_OPTIONS = {
    "detect_leaks": 0,  # Python itself leaks, and looking for leaks takes ptrace(2)
    "halt_on_error": 0,
    "detect_odr_violation": 0,
    "quarantine_size_mb": 64,
    "color": "never",
}
_UBSAN_OPTIONS = {"halt_on_error": 0, "color": "never"}
_INSTRUMENTED = (
    "-O1",  # more would drop accesses whose values nobody uses
    "-g1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fsanitize-recover=address,undefined",
    "-fno-sanitize=vptr",  # needs type information that torch's libraries hide
)


def _address_sanitizer() -> Sanitizer:
    """gcc's, whose runtime has to be loaded before Python's own libraries."""
    compiler = find_tools().cxx
    libraries = [_runtime(compiler, name) for name in ("libasan.so", "libubsan.so", "libstdc++.so.6")]
    variables = {
        "LD_PRELOAD": " ".join(map(str, libraries)),
        "ASAN_OPTIONS": _options(_ASAN_OPTIONS),
        "UBSAN_OPTIONS": _options(_UBSAN_OPTIONS),
    }
    equipment = Equipment(read_only=tuple(libraries), env=variables)
    return Sanitizer("address, undefined", equipment, address_reports, _INSTRUMENTED)


def _options(options: dict[str, Any]) -> str:
    return ":".join(f"{name}={value}" for name, value in options.items())


@cache
def _runtime(compiler: str | None, name: str) -> Path:
    """A library of the C++ compiler's. Raises MachineError."""
    command = [compiler or "c++", f"-print-file-name={name}"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.strip()
    except OSError:
        said = ""
    if not Path(said).is_absolute():
        raise MachineError(
            f"--sanitize needs gcc's sanitizers, and {compiler or 'no C++ compiler'} has no {name}: install "
            "them (Debian and Ubuntu: apt install g++) or set CXX to a g++ that has them"
        )
    return Path(said).resolve()


_ASAN = re.compile(r"ERROR: AddressSanitizer: (?P<kind>.*)")
_ACCESS = re.compile(r"^.*\b(?P<how>READ|WRITE) (?:of size|memory access).*$", re.MULTILINE)
_UBSAN = re.compile(r"^(?P<place>\S+:\d+:\d+): runtime error: .*$", re.MULTILINE)
_FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ in .*$", re.MULTILINE)
_NO_FAULT = re.compile(r"(?:requested allocation size|allocator is out of memory|out of memory)")


def address_reports(said: str) -> Iterator[Report]:
    """The reports of AddressSanitizer and UndefinedBehaviorSanitizer."""
    for part in re.split(r"(?=^==\d+==ERROR: AddressSanitizer)", said, flags=re.MULTILINE):
        if (error := _ASAN.search(part)) is None or _NO_FAULT.match(error["kind"]):
            continue
        access = _ACCESS.search(part)
        flag = Flag.UNDEFINED_BEHAVIOUR
        if access is not None:
            flag = Flag.OUT_OF_BOUNDS_READ if access["how"] == "READ" else Flag.OUT_OF_BOUNDS_WRITE
        kind = _line(error["kind"].partition(" on ")[0])
        how = _line(access[0].partition(" at ")[0]) if access is not None else ""
        frame = _FRAME.search(part)
        place = _line(re.sub(r"^\s*#\d+ 0x[0-9a-f]+ ", "", frame[0])) if frame is not None else ""
        yield Report(flag, _line(" ".join(filter(None, (kind, how, place)))))
    for error in _UBSAN.finditer(said):
        yield Report(Flag.UNDEFINED_BEHAVIOUR, _line(error[0]))


COMPUTE_SANITIZER = "compute-sanitizer"


def _compute_sanitizer(tool: str) -> Sanitizer:
    program = find_compute_sanitizer()
    launcher = (
        *(str(program), "--tool", tool, "--target-processes", "application-only"),
        *("--show-backtrace", "no", "--print-limit", "50"),
        *(("--report-api-errors", "no") if tool == "memcheck" else ()),
    )
    # torch hands out pieces of large blocks, whose ends no tool knows.
    variables = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    equipment = Equipment(read_only=(program.parent,), env=variables, launcher=launcher)
    return Sanitizer(tool, equipment, kernel_reports, finished=" SUMMARY: ")


def find_compute_sanitizer() -> Path:
    """The program itself, beside its libraries; a toolkit's `bin` holds a script. Raises MachineError."""
    nvcc = find_tools().nvcc
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    homes += [str(Path(nvcc).resolve().parent.parent)] if nvcc else []
    places = [Path(home, COMPUTE_SANITIZER, COMPUTE_SANITIZER) for home in homes if home]
    places += [
        path
        for packages in site.getsitepackages()
        for path in Path(packages).glob(f"nvidia/*/{COMPUTE_SANITIZER}/{COMPUTE_SANITIZER}")
    ]
    if found := shutil.which(COMPUTE_SANITIZER):
        real = Path(found).resolve()
        beside = real.parent.parent / COMPUTE_SANITIZER / COMPUTE_SANITIZER
        places.insert(0, beside if beside.is_file() else real)
    for place in places:
        if os.access(place, os.X_OK) and place.is_file():
            return place.resolve()
    raise MachineError(
        "--sanitize needs compute-sanitizer, a part of the CUDA toolkit: install it and put it on PATH or "
        "set CUDA_HOME; or pip install nvidia-cuda-sanitizer-api"
    )


_KERNEL_REPORTS = (
    (re.compile(r"nvalid __\w+__ read of size"), Flag.OUT_OF_BOUNDS_READ),
    (re.compile(r"nvalid __\w+__ (?:write|atomic) of size"), Flag.OUT_OF_BOUNDS_WRITE),
    (re.compile(r"Race reported between|\bhazard detected"), Flag.RACE),
    (re.compile(r"Uninitialized "), Flag.UNINITIALISED),
    (re.compile(r"Barrier error detected|Deadlock detected"), Flag.UNDEFINED_BEHAVIOUR),
)
_LIBRARY = re.compile(r"\bat::native::|\bat_cuda_detail::|cudnn|cublas|nvjet")
"""Kernels of libraries, which are not what is asked about."""


def kernel_reports(said: str) -> Iterator[Report]:
    """The reports of compute-sanitizer's tools: a headline, and indented lines that say where."""
    records: list[list[str]] = []
    for line in said.splitlines():
        if line.startswith("========="):
            text = line.lstrip("=")
            if text.startswith("  ") and records:
                records[-1].append(text.strip())
            else:
                records.append([text.strip()])
    for headline, *more in records:
        flag = next((flag for pattern, flag in _KERNEL_REPORTS if pattern.search(headline)), None)
        if flag is None or any(map(_LIBRARY.search, (headline, *more))):
            continue
        misaligned = any("misaligned" in line for line in more)
        kind = Flag.UNDEFINED_BEHAVIOUR if misaligned else flag
        yield Report(kind, _line(" ".join((headline, *more[:1]))))
