"""The corpus: candidates of known fate in `tests/corpus/KIND/NAME.py`, read from their header comments.

# problem: level1/1            a packaged problem's id, or a name in tests/corpus/problems
# expected: wrong_output       the status; alternatives apart by | where it is really undetermined
# expected on cuda: timeout    where it ends otherwise there (optional)
# caught by: values: signed    prefix of the failed check's name; alternatives apart by | (optional)
# speedup below: 1.5           if it is correct, its interval must reach below this (kind `harmless`)
# flag: shape_specialised      if it is correct, the record has this flag (else none of BEYOND)
# armed by: loop.run_block     what its mechanism takes hold of, apart by commas; it reports each (optional)
# devices: cuda                `cpu` or `cuda` where it makes sense on one of them only (optional)
# settings: {"trials": 1}      VerifySettings fields that differ from BASE (optional)

docs/reference/corpus.md describes the kinds and says which cheat stands for which mechanism.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kernelproof.backends import backend
from kernelproof.problems import open_suite, read_problem
from kernelproof.types import CheckOutcome, Flag, Problem, Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier import status_rules as kinds
from kernelproof.verifier.build import Builder
from kernelproof.verifier.engine.build_stage import prebuild
from kernelproof.verifier.referee import stages
from kernelproof.verifier.referee.plan import PLAN
from kernelproof.verifier.sandbox import Group

CORPUS = Path(__file__).parents[1] / "corpus"
KINDS = ("honest", "harmless", "wrong", "cheats", "faults")
BAD = ("wrong", "cheats", "faults")
"""Kinds of which none may be accepted."""
BEYOND = {Flag.OUT_OF_BOUNDS_READ, Flag.OUT_OF_BOUNDS_WRITE}
"""Flags that say that a program is faulty: only those whose header names one get it."""
DEVICES = ("cpu", "cuda")
BASE: dict[str, dict[str, Any]] = {
    "cpu": {
        "backend": "cpp",
        "own_kernel": False,
        "trials": 1,
        "measure_seconds": 0.3,
        "memory_bytes": 4 << 30,
        "threads": 1,
    },
    "cuda": {
        "backend": "cuda",
        "own_kernel": False,
        "trials": 1,
        "measure_seconds": 0.3,
        "memory_bytes": 16 << 30,
    },
}
SIZE = {"cpu": "small", "cuda": "full"}
"""The preset that a member runs at, where its problem has it and its header does not say otherwise."""
_HEADER = re.compile(
    r"^# (problem|expected|expected on cuda|caught by|speedup below|flag|devices|settings|armed by): (.+)$",
    re.MULTILINE,
)
_ARMED = re.compile(r"armed by: (.+)$", re.MULTILINE)
"""What a member prints to stderr, or has a compiler print, when its mechanism takes hold of something."""

_BUILDS = re.compile(r"(?<!tl\.)\b(?:load_inline|load|CppExtension|CUDAExtension)\(")

AT_TIMES = {
    *(kinds.INPUTS_LATE.name, kinds.STATE_UPDATED.name, kinds.PRECISION.name, kinds.RESOLVED.name),
    *(kinds.OWN_KERNEL.name, kinds.OWN_COMPUTE.name, kinds.PROBES.name, kinds.PROBE.name),
    *(kinds.TIMED_INPUTS.name, kinds.RESULTS_LATE.name, kinds.INSIDE_CLOCK.name),
}
"""Checks of the plan that a correct verdict may lack: they are asked where the device, the problem or the
settings give reason to, or recorded only where they fail."""


@dataclass(frozen=True)
class Member:
    """One candidate on one device, and what must come of it."""

    kind: str
    name: str
    device: str
    """`cpu` or `cuda`."""
    source: str
    problem: Problem
    expected: tuple[Status, ...]
    caught_by: tuple[str, ...]
    """Prefixes; empty where the status says enough."""
    speedup_below: float | None
    flag: Flag | None
    settings: VerifySettings
    armed_by: tuple[str, ...]
    """What its mechanism has to take hold of, or it is no longer the attack that it was."""

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def builds(self) -> bool:
        """Whether it has an extension compiled."""
        return _BUILDS.search(self.source) is not None

    @property
    def request(self) -> VerifyRequest:
        """What a referee is asked."""
        device = "cuda:0" if self.device == "cuda" else "cpu"
        return VerifyRequest(problem=self.problem, source=self.source, settings=self.settings, device=device)


@dataclass
class Confusion:
    """How often a kind of candidate got a status, and who got another than it deserves."""

    table: Counter[tuple[str, str]] = field(default_factory=Counter)
    accepted: list[str] = field(default_factory=list)
    """Members of the bad kinds that were found correct."""
    refused: list[str] = field(default_factory=list)
    """Honest and harmless members that had to be, and were not."""
    misses: list[tuple[str, str]] = field(default_factory=list)
    """Every member whose fate is not the one in its header, and why not."""

    def add(self, member: Member, verdict: Verification) -> str | None:
        """Counts a verdict; returns what `miss` says of it."""
        why = miss(member, verdict)
        self.note(member, verdict.status.value, why)
        return why

    def note(self, member: Member, status: str, why: str | None) -> None:
        """Counts a member by the status it got, or `lost` where it took the referee with it; `why`: it is not
        the one that its header names."""
        self.table[member.kind, status] += 1
        correct = status == Status.CORRECT
        if correct and member.kind in BAD:
            self.accepted.append(member.id)
        if not correct and member.kind not in BAD and why is not None:
            self.refused.append(member.id)
        if why is not None:
            self.misses.append((member.id, why))

    def lines(self) -> list[str]:
        """The table, kinds across and statuses down, and the totals."""
        kinds = [kind for kind in KINDS if any(kind == k for k, _ in self.table)]
        statuses = sorted({status for _, status in self.table})
        lines = [f"{'':18}" + "".join(f"{kind:>10}" for kind in kinds)]
        for status in statuses:
            counts = "".join(f"{self.table[kind, status] or '.':>10}" for kind in kinds)
            lines.append(f"{status:18}{counts}")
        lines.append(f"{'together':18}" + "".join(f"{self.count(kind):>10}" for kind in kinds))
        bad = sum(map(self.count, BAD))
        good = sum(self.count(kind) for kind in KINDS if kind not in BAD)
        lines.append("")
        lines.append(f"accepted of {bad} cheats, wrong and faulty: {len(self.accepted)}")
        lines.append(f"refused of {good} honest and harmless: {len(self.refused)}")
        lines.append(f"not as their header says: {len(self.misses)}")
        return lines

    def count(self, kind: str) -> int:
        """Members of a kind that were judged."""
        return sum(number for (k, _), number in self.table.items() if k == kind)


def members(device: str) -> list[Member]:
    """Every member of the corpus that runs on `cpu` or `cuda`, by kind and name.

    On a CPU kernels of a GPU's backend are interpreted, and never timed; where the backend's package is not
    installed its members are left out.
    """
    return list(_members(device))


@cache
def _members(device: str) -> tuple[Member, ...]:
    found = [_read(kind, path, device) for kind in KINDS for path in sorted((CORPUS / kind).glob("*.py"))]
    return tuple(member for member in found if member is not None)


def miss(member: Member, verdict: Verification) -> str | None:
    """Why a verdict is not the one that the member deserves; None when it is."""
    if verdict.status not in member.expected:
        wanted = " or ".join(member.expected)
        return f"{verdict.status} instead of {wanted}: {verdict.reason}"
    # Of a candidate that raised, the record has the traceback instead of what it printed.
    idle = unarmed(member, verdict.details) if verdict.status is not Status.RUNTIME_ERROR else []
    if idle:
        return f"{verdict.status}, but unarmed: it did not take hold of {', '.join(idle)}"
    if other := unplanned(verdict):
        return other
    failed = failed_check(verdict) or "no check"
    if verdict.status is Status.CORRECT:
        if member.flag is not None and member.flag not in verdict.flags:
            return f"correct without the flag {member.flag}"
        if accused := BEYOND & set(verdict.flags) - {member.flag}:
            return f"correct with the flag {min(accused)}"
        return _too_fast(member, verdict)
    if member.caught_by and not failed.startswith(member.caught_by):
        return (
            f"{verdict.status} through {failed} instead of {' or '.join(member.caught_by)}: {verdict.reason}"
        )
    return None


def unplanned(verdict: Verification) -> str | None:
    """How the checks on record differ from those that the plan declares; None where they do not."""
    declared = {check.name for stage in PLAN for check in stage.checks}
    recorded = {check.name for check in verdict.checks}
    for name in recorded:
        if name not in declared and not any(name.startswith(f"{each}: ") for each in declared):
            return f"the check {name} stands in no stage of the plan"
    if verdict.status is not Status.CORRECT:
        return None
    settings = verdict.settings
    asked = {
        check.name
        for stage in PLAN
        if stage.wanted is stages.always or (stage.wanted is stages.measured and settings.measure)
        for check in stage.checks
    } - AT_TIMES
    asked |= {kinds.OWN_KERNEL.name} if settings.own_kernel else set()
    asked |= {kinds.OWN_COMPUTE.name} if settings.purity == "own-compute" else set()
    left = [name for name in asked if not any(f"{each}: ".startswith(f"{name}: ") for each in recorded)]
    return f"correct without the check {min(left)} of the plan" if left else None


def unarmed(member: Member, output: str) -> list[str]:
    """What its mechanism did not take hold of, by what it printed."""
    reached = set(_ARMED.findall(output))
    return [part for part in member.armed_by if part not in reached]


def _too_fast(member: Member, verdict: Verification) -> str | None:
    if member.speedup_below is None:
        return None
    if verdict.measurement is None:
        return "correct, but not measured"
    sure = verdict.measurement.speedup_interval.low  # a wide interval claims no more than its lower end
    if sure >= member.speedup_below:
        return f"a speedup of {sure:.3g} or more instead of less than {member.speedup_below:g}"
    return None


def failed_check(verdict: Verification) -> str | None:
    """The name of the check that failed, if one did."""
    return next((c.name for c in verdict.checks if c.outcome is CheckOutcome.FAIL), None)


def build_ahead(chosen: Sequence[Member], cache: Path, jobs: Group, *, threads: int) -> None:
    """Compiles what the members want compiled, several at a time, so that judging finds it in the cache."""
    builder = Builder(cache, group=jobs)
    with ThreadPoolExecutor(threads) as pool:
        wanted = [member for member in chosen if member.builds]
        list(pool.map(lambda m: prebuild(builder, cache, m.source, m.settings, jobs, m.problem), wanted))


def _read(kind: str, path: Path, device: str) -> Member | None:
    source = path.read_text()
    header = dict(_HEADER.findall(source))
    if header.get("devices", device) != device:
        return None
    problem = _problem(header["problem"])
    size = SIZE[device] if SIZE[device] in problem.sizes else "full"
    changed = json.loads(header.get("settings", "{}"))
    if device == "cpu" and backend(changed.get("backend", "cpp")).on_gpu:
        if not backend(changed["backend"]).interpretable:
            return None
        changed["measure"] = False
    expected = header.get(f"expected on {device}", header["expected"])
    bound = header.get("speedup below")
    return Member(
        kind=kind,
        name=path.stem,
        device=device,
        source=source,
        problem=problem,
        expected=tuple(Status(word) for word in expected.split("|")),
        caught_by=tuple(header["caught by"].split("|")) if "caught by" in header else (),
        speedup_below=float(bound) if bound else None,
        flag=Flag(header["flag"]) if "flag" in header else None,
        settings=VerifySettings(**(BASE[device] | {"size": size} | changed)),
        armed_by=tuple(header["armed by"].split(", ")) if "armed by" in header else (),
    )


@cache
def _problem(name: str) -> Problem:
    if "/" in name:
        return open_suite().find(name)
    return read_problem(CORPUS / "problems" / f"{name}.py")
