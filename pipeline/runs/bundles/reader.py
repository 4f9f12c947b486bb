"""The parts of one attempt held against each other: what an edit that also mends the hashes leaves behind.

A forger who edits everything alike leaves no contradiction. Only running the candidate finds that.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

from pydantic import Field, ValidationError

from kernelproof.errors import UsageError
from kernelproof.extraction import extract, normalise
from kernelproof.hashing import sha256_text
from kernelproof.problems.reading import Place, parse_problem
from kernelproof.runs.bundles.container import (
    FORMAT,
    MANIFEST,
    MEMBER,
    OPTIONAL,
    PARTS,
    RECORDS,
    SOURCES,
    VERSION,
    BadBundle,
    Container,
    NoJson,
    decoded,
    manifest_sha256,
    member,
    text_of,
)
from kernelproof.runs.bundles.signing import Signers
from kernelproof.runs.sizes import sizes_of
from kernelproof.types import (
    CheckOutcome,
    Extraction,
    FrozenRecord,
    Measurement,
    Pace,
    Problem,
    Response,
    Status,
    Verification,
)
from kernelproof.types.exchange import prompt_sha256
from kernelproof.types.record import STORED, explain
from kernelproof.types.reproduction import Bundled
from kernelproof.version import POLICY, policy_of

ROUNDING = 1e-6
"""Relative; figures that follow from each other are computed in float64."""


def contradictions(attempt: Bundled) -> tuple[str, ...]:
    """The statements of an attempt that cannot be true together, a line for each."""
    verification = attempt.verification
    return (
        *_problem(attempt.problem, verification),
        *program_changed(attempt.response, attempt.extraction, attempt.base, verification),
        *_prompt(attempt),
        *_status(verification),
        *(_measured(verification.measurement, verification) if verification.measurement else ()),
    )


def program_changed(
    response: Response, extraction: Extraction, base: str | None, verification: Verification
) -> Iterator[str]:
    """Whether extracting again from the answer gives the source that was judged.

    `base`: the program that the question showed, where the answer is a diff of it.
    """
    found = extract(response, base).candidate
    # Earlier versions made the line endings of an answer plain even where it was nothing but a program.
    same = found and (found.sha256, sha256_text(normalise(found.source)[0]))
    if verification.candidate_sha256 not in (same or ()):
        yield "the response does not yield the source that was judged"
    kept = extraction.candidate
    if kept is None or sha256_text(kept.source) != verification.candidate_sha256:
        yield "the candidate's source is not the one that was judged"


def _problem(problem: Problem, verification: Verification) -> Iterator[str]:
    if (
        sha256_text(problem.source) != verification.problem_sha256
        or problem.sha256 != verification.problem_sha256
    ):
        yield "the problem's source is not the one that was judged against"
    if problem.id != verification.problem_id:
        yield f"the problem is {problem.id!r:.60}, the verdict is on {verification.problem_id!r:.60}"
    if verification.settings.size not in sizes_of(problem):
        yield f"the problem has no size {verification.settings.size!r:.60}, by which it is said to be judged"
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


def _status(verification: Verification) -> Iterator[str]:
    failed = [check.name for check in verification.checks if check.outcome is CheckOutcome.FAIL]
    if verification.status is Status.CORRECT and failed and not verification.flags:
        yield f"the verdict is correct, but a check failed ({failed[0]!r:.60}) and no flag says so"
    errors = [finding.rule for finding in verification.findings if finding.status]
    if verification.status is Status.CORRECT and errors:
        yield f"the verdict is correct, but the policy refused the source ({errors[0]!r:.60})"


def _measured(measured: Measurement, verification: Verification) -> Iterator[str]:
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
    if policy_of(verification.verifier) == POLICY:
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


MOST_EXPLAINED = 100
T = TypeVar("T")
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Listed(FrozenRecord):
    bytes: int = Field(ge=0)
    sha256: Sha256


class Manifest(FrozenRecord):
    format: Literal["kernelproof bundle"]
    version: int
    kernelproof: str = Field(max_length=200)
    policy: str = Field(max_length=200)
    members: dict[str, Listed]
    sha256: Sha256
    """Over all of the rest: the name of the bundle."""


class CheckedAttempt(NamedTuple):
    """One attempt of a bundle, held against the manifest and against itself."""

    attempt: Bundled | None
    """None where its members make no record."""
    tampering: tuple[str, ...]


class Bundle:
    """An open bundle. Use it as a context manager."""

    def __init__(self, path: Path, signers: Signers | None = None) -> None:
        """Raises BadBundle for a file that is no bundle, or one that is not opened.

        With `signers`, also what `signer_of` raises, before anything in the file is read.
        """
        self.path = path
        self._container = Container(path, signers)
        try:
            self._manifest, own = self._read_manifest()
            self.tampering: tuple[str, ...] = (*own, *self._mismatches())
        except BaseException:
            self._container.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._container.__exit__()

    @property
    def sha256(self) -> str:
        """The hash that names the bundle: over its manifest, and so over every member."""
        return self._manifest.sha256

    @property
    def signer(self) -> str | None:
        """The name by which the signers list the key that signed it; None where no list was given."""
        return self._container.signer

    @property
    def numbers(self) -> list[int]:
        """The attempts that it holds, by the numbers that they had where it was made."""
        names = {*self._container.sizes, *self._manifest.members}
        return sorted({int(found[1]) for name in names if (found := MEMBER.fullmatch(name))})

    def checked_attempt(self, number: int) -> CheckedAttempt:
        """One attempt, with what in it cannot be true together."""
        try:
            attempt = self._record(number)
        except NoJson as error:
            return CheckedAttempt(None, (str(error),))
        return CheckedAttempt(attempt, tuple(f"attempt {number}: {line}" for line in contradictions(attempt)))

    def _read_manifest(self) -> tuple[Manifest, list[str]]:
        if MANIFEST not in self._container.sizes:
            raise self._container.bad(f"it has no {MANIFEST}")
        try:
            value = decoded(self._container.read(MANIFEST))
        except NoJson as error:
            raise self._container.bad(f"{MANIFEST}: {error}") from None
        stated = value if isinstance(value, dict) else {}
        if stated.get("format") != FORMAT:
            raise self._container.bad(f"{MANIFEST} does not say that it is one")
        version = stated.get("version")
        if version != VERSION or isinstance(version, bool):
            raise BadBundle(
                f"{self.path} is a bundle of format {version!r:.40}, and {VERSION} is read here; a newer "
                "kernelproof may read it (pip install --upgrade kernelproof)"
            )
        try:
            manifest = Manifest.model_validate(value)
        except ValidationError as error:
            raise self._container.bad(f"{MANIFEST}: {_mistakes(error)}") from None
        edited = manifest_sha256(value) != manifest.sha256
        return manifest, [f"{MANIFEST} was edited: its SHA-256 is not the one it states"] if edited else []

    def _mismatches(self) -> list[str]:
        """Members that are not what the manifest says, or that no bundle has."""
        sizes, listed = self._container.sizes, self._manifest.members
        here = set(sizes) - {MANIFEST}
        said = [f"{name!r:.80} is missing" for name in sorted(set(listed) - here)]
        said += [f"{name} is there, and the manifest does not list it" for name in sorted(here - set(listed))]
        strange = [name for name in sorted(listed) if not MEMBER.fullmatch(name)]
        said += [f"{name!r:.80} is no member of a bundle" for name in strange]
        for name in sorted(here & set(listed)):
            if sizes[name] != listed[name].bytes:
                said.append(f"{name} has {sizes[name]} bytes, and the manifest says {listed[name].bytes}")
            elif self._hash(name) != listed[name].sha256:
                said.append(f"{name} was edited: its SHA-256 is not the one in the manifest")
        for number in self.numbers:
            needed = (member(number, name) for name in SOURCES + RECORDS if name not in OPTIONAL)
            lacking = [name for name in needed if name not in here and name not in listed]
            said += [f"{name} is missing, and the manifest does not list it" for name in lacking]
        return said or ([] if self.numbers else ["it holds no attempt"])

    def _hash(self, name: str) -> str:
        digest = hashlib.sha256()
        for chunk in self._container.chunks(name):
            digest.update(chunk)
        return digest.hexdigest()

    def _record(self, number: int) -> Bundled:
        """The attempt's members as one record. Raises NoJson, with the member's name, for what makes none."""
        parts = {name.removesuffix(".json"): self._member(number, name, decoded) for name in RECORDS}
        sources = {name: self._member(number, name, text_of) for name in SOURCES}
        tables = {name: part for name, part in parts.items() if isinstance(part, dict)}
        source = sources["candidate.py"]
        run = tables.get("run", {})
        value = {
            "number": number,
            "run": run.get("settings"),
            "sample": run.get("sample"),
            "turn": run.get("turn"),
            "problem": {**tables.get("problem", {}), "source": sources["problem.py"]},
            "prompt": parts["prompt"],
            "response": parts["response"],
            "base": sources["base.py"],
            "extraction": {
                **tables.get("extraction", {}),
                "candidate": None if source is None else {"source": source, "sha256": sha256_text(source)},
            },
            "verification": {**tables.get("verdict", {}), **{name: parts[name] for name in PARTS}},
        }
        try:
            return Bundled.model_validate(value, context=STORED)
        except ValidationError as error:
            raise NoJson(f"attempt {number} is none that kernelproof writes: {_mistakes(error)}") from None

    def _member(self, number: int, name: str, read: Callable[[bytes], T]) -> T | None:
        """One member as `read` has it; None where it is missing."""
        found = member(number, name)
        if found not in self._container.sizes:
            return None
        try:
            return read(self._container.read(found))
        except NoJson as error:
            raise NoJson(f"{found}: {error}") from None


def _mistakes(error: ValidationError) -> str:
    """The mistakes in a record, in a line; of very many only how many."""
    count = error.error_count()
    return explain(error) if count <= MOST_EXPLAINED else f"{count:,} of its values are none that it may have"
