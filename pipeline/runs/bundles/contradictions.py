"""The parts of one attempt held against each other: what an edit that also mends the hashes leaves behind.

A forger who edits everything alike leaves no contradiction. Only running the candidate finds that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from kernelproof.errors import UsageError
from kernelproof.extraction import extract, normalise
from kernelproof.hashing import sha256_text
from kernelproof.problems.reading import Place, parse_problem
from kernelproof.runs.sizes import sizes_of
from kernelproof.types import (
    CheckOutcome,
    Extraction,
    Measurement,
    Pace,
    Problem,
    Response,
    Status,
    Verification,
)
from kernelproof.types.exchange import prompt_sha256
from kernelproof.types.reproduction import Bundled
from kernelproof.version import POLICY, policy_of

ROUNDING = 1e-6
"""Relative; figures that follow from each other are computed in float64."""


def contradictions(attempt: Bundled) -> tuple[str, ...]:
    """The statements of an attempt that cannot be true together, a line for each."""
    claim = attempt.verification
    return (
        *_problem(attempt.problem, claim),
        *program_changed(attempt.response, attempt.extraction, attempt.base, claim),
        *_prompt(attempt),
        *_verdict(claim),
        *(_measured(claim.measurement, claim) if claim.measurement else ()),
    )


def program_changed(
    response: Response, extraction: Extraction, base: str | None, claim: Verification
) -> Iterator[str]:
    """Whether extracting again from the answer gives the source that was judged.

    `base`: the program that the question showed, where the answer is a diff of it.
    """
    found = extract(response, base).candidate
    # Earlier versions made the line endings of an answer plain even where it was nothing but a program.
    same = found and (found.sha256, sha256_text(normalise(found.source)[0]))
    if claim.candidate_sha256 not in (same or ()):
        yield "the response does not yield the source that was judged"
    kept = extraction.candidate
    if kept is None or sha256_text(kept.source) != claim.candidate_sha256:
        yield "the candidate's source is not the one that was judged"


def _problem(problem: Problem, claim: Verification) -> Iterator[str]:
    if sha256_text(problem.source) != claim.problem_sha256 or problem.sha256 != claim.problem_sha256:
        yield "the problem's source is not the one that was judged against"
    if problem.id != claim.problem_id:
        yield f"the problem is {problem.id!r:.60}, the verdict is on {claim.problem_id!r:.60}"
    if claim.settings.size not in sizes_of(problem):
        yield f"the problem has no size {claim.settings.size!r:.60}, by which it is said to be judged"
    place = Place(Path(), "", problem.level, None, problem.name)
    try:
        read = parse_problem(problem.source, place, "problem.py", suite=problem.suite)
    except UsageError as error:
        yield f"the problem's source is no problem: {error}"
        return
    for name in ("sizes", "signature", "summary"):
        if getattr(read, name) != getattr(problem, name):
            yield f"the {name} of the problem do not follow from its source"


def _prompt(attempt: Bundled) -> Iterator[str]:
    prompt = attempt.prompt
    if prompt is None:
        return
    if prompt_sha256(prompt.system, prompt.history, prompt.user) != prompt.sha256:
        yield "the prompt is not the one whose SHA-256 it gives"


def _verdict(claim: Verification) -> Iterator[str]:
    failed = [check.name for check in claim.checks if check.outcome is CheckOutcome.FAIL]
    if claim.status is Status.CORRECT and failed and not claim.flags:
        yield f"the verdict is correct, but a check failed ({failed[0]!r:.60}) and no flag says so"
    errors = [finding.rule for finding in claim.findings if finding.status]
    if claim.status is Status.CORRECT and errors:
        yield f"the verdict is correct, but the policy refused the source ({errors[0]!r:.60})"


def _measured(measured: Measurement, claim: Verification) -> Iterator[str]:
    interval = measured.speedup_interval
    figures = (measured.speedup, interval.low, interval.high, measured.candidate_ms, measured.baseline_ms)
    if not all(math.isfinite(figure) and figure > 0 for figure in figures):
        yield "a time or a speedup is no positive number"
        return
    if not interval.low * (1 - ROUNDING) <= measured.speedup <= interval.high * (1 + ROUNDING):
        yield f"the speedup {measured.speedup:.4g} lies outside of its interval"
    ratio = measured.baseline_ms / measured.candidate_ms
    if abs(ratio / measured.speedup - 1) > ROUNDING:
        yield f"the times give a speedup of {ratio:.4g}, not {measured.speedup:.4g}"
    faster, slower = interval.low > 1, interval.high < 1
    if {Pace.FASTER: not faster, Pace.SLOWER: not slower}.get(measured.pace, False):
        yield f"the pace is {measured.pace}, which the interval does not say"
    if policy_of(claim.verifier) == POLICY:
        yield from _samples(measured)


def _samples(measured: Measurement) -> Iterator[str]:
    """A claim is at most the median of the blocks' ratios: `conclude` in referee/timing/claim.py."""
    ours, theirs = measured.candidate_samples_ms, measured.baseline_samples_ms
    if len(ours) != len(theirs) or not all(map(_positive, (*ours, *theirs))):
        yield "the samples are not a positive time for each call of either side, block by block"
        return
    if not ours:
        yield "a speedup is claimed, and there are no samples"
        return
    shown = median(_call(base) / _call(own) for own, base in zip(ours, theirs, strict=True))
    if measured.speedup > shown * (1 + ROUNDING):
        yield f"the samples show a speedup of {shown:.4g} at most, and {measured.speedup:.4g} is claimed"


def _positive(block: tuple[float, ...]) -> bool:
    return bool(block) and all(math.isfinite(ms) and ms > 0 for ms in block)


def _call(block: tuple[float, ...]) -> float:
    """One call of a block: the median of all but the first; of a single call that one."""
    return median(block[1:] or block)
