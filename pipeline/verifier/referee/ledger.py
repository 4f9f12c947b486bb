"""The record of one verification while it is being made: checks, figures, seeds, and how it ended."""

from __future__ import annotations

import hashlib
import itertools
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from kernelproof.hashing import sha256_text
from kernelproof.types import (
    Build,
    Check,
    CheckOutcome,
    Determinism,
    Environment,
    ErrorClass,
    ErrorStatistics,
    Flag,
    Kernels,
    Measurement,
    SandboxReport,
    Status,
    Verification,
)
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import compiler_output
from kernelproof.verifier.referee.correctness import tolerance
from kernelproof.verifier.status_rules import OUTPUT_STRIDES, CheckKind, Ended, deciding_builds
from kernelproof.version import VERIFIER

Figures = dict[str, Any]
SEED_BITS = 62


def derived(seed: int, number: int) -> int:
    """The seed of this number of all those that one secret seed stands for: the first 62 bits of the BLAKE2b
    digest of both, as decimal numbers with a space between."""
    digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)


class Ledger:
    """Collects evidence; `close` makes the Verification."""

    def __init__(self, request: VerifyRequest) -> None:
        self._request = request
        self.checks: list[Check] = []
        self.errors: list[ErrorStatistics] = []
        self.builds: list[Build] = []
        self.seeds: dict[str, int] = {}
        self.stage_seconds: dict[str, float] = {}
        self.inputs: tuple[dict[str, Any], ...] = ()
        self.environment: Environment | None = None
        self.sandbox: SandboxReport | None = None
        self.measurement: Measurement | None = None
        self.exit: str | None = None
        self.process_output = ""
        """Text that the candidate's processes wrote to stdout and stderr. Untrusted."""
        self.own_weights = ""
        """A sentence on the candidate's weights that differ from the reference's in name, shape or values;
        or empty."""
        self.error_class: ErrorClass | None = None
        self.determinism: Determinism | None = None
        self.flags: set[Flag] = set()
        self.kernels: Kernels | None = None
        self._strides: dict[int, tuple[str, str]] = {}

    def seed(self, name: str) -> int:
        """A fresh secret seed, written down under `name`."""
        value = secrets.randbits(SEED_BITS)
        self.seeds[name] = value
        return value

    def seeds_of(self, name: str) -> Iterator[int]:
        """Secret seeds without end, of which one is written down: the n-th, from 1, is `derived` from it."""
        root = self.seed(name)
        return (derived(root, number) for number in itertools.count(1))

    def saw_class(self, classes: Iterable[ErrorClass | None]) -> None:
        """Notes the error classes of a trial's outputs; the worst of all trials counts."""
        order = list(ErrorClass)
        for found in classes:
            if found is not None:
                worst = max(order.index(found), order.index(self.error_class or found))
                self.error_class = order[worst]

    def note_strides(self, output: int, actual: str, expected: str) -> None:
        """Notes that an output has other strides than the reference's, which is harmless."""
        self._strides[output] = (actual, expected)

    def record_strides(self) -> None:
        """Records what was noted about strides."""
        if not self._strides:
            self.passed(OUTPUT_STRIDES, "the same")
            return
        figures = {f"output {i}": f"{found}, expected {other}" for i, (found, other) in self._strides.items()}
        seen = "others, which is harmless: values are compared by index"
        self.passed(OUTPUT_STRIDES, seen, figures)

    def passed(self, check: CheckKind, seen: str, figures: Figures | None = None) -> None:
        """Records a check that passed."""
        self._record(CheckOutcome.PASS, check, seen, figures)

    def skipped(self, check: CheckKind, why: str, figures: Figures | None = None) -> None:
        """Records a check that had nothing to look at."""
        self._record(CheckOutcome.NOT_APPLICABLE, check, why, figures)

    def failed(self, check: CheckKind, seen: str, figures: Figures | None = None, *, fact: str = "") -> Ended:
        """Records a check that failed, and returns the exception that ends the verification. `fact`: what it
        saw, for a check that ends in several statuses.

        Raises ValueError for a check that ends nothing.
        """
        ended = check.failed(seen, fact)
        self._record(CheckOutcome.FAIL, check, seen, figures)
        return ended

    def flagged(self, check: CheckKind, flag: Flag, seen: str, figures: Figures | None = None) -> None:
        """Records a check that failed and ends nothing: the candidate gets a flag."""
        self._record(CheckOutcome.FAIL, check, seen, figures)
        self.flags.add(flag)

    def _record(self, outcome: CheckOutcome, check: CheckKind, seen: str, figures: Figures | None) -> None:
        said, numbers = clean(seen), {key: _cleaned(value) for key, value in (figures or {}).items()}
        record = Check(name=check.name, outcome=outcome, asked=check.question, seen=said, figures=numbers)
        self.checks.append(record)

    def since(self, checks: int, errors: int) -> tuple[list[Check], list[ErrorStatistics]]:
        """Takes back the checks and error statistics after the first so many of each, and returns them."""
        taken = self.checks[checks:], self.errors[errors:]
        del self.checks[checks:], self.errors[errors:]
        return taken

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the wall seconds spent inside to the stage's."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + time.monotonic() - start

    def build_failure(self, raised: str = "") -> Ended | None:
        """How the verification ends when nothing that the candidate asked to have built was, else None.

        `raised`: the message of the error that ended it; then one that failed is enough, if it speaks of it.
        """
        return compiler_output.ended_by_builds(deciding_builds(self.builds, raised))

    def close(self, status: Status, reason: str, details: str = "") -> Verification:
        """The finished record. Without `details` it has what the candidate's processes wrote."""
        request = self._request
        ranked = status in (Status.CORRECT, Status.CHEATING)
        return Verification(
            status=status,
            reason=clean(reason),
            problem_id=request.problem.id,
            problem_sha256=request.problem.sha256,
            candidate_sha256=sha256_text(request.source),
            settings=request.settings,
            environment=self.environment,
            sandbox=self.sandbox,
            builds=tuple(self.builds),
            checks=tuple(self.checks),
            errors=tuple(self.errors),
            measurement=self.measurement if ranked else None,
            seeds=self.seeds,
            inputs=self.inputs,
            details=clean(details or self.process_output)[:20_000],
            exit=self.exit,
            error_class=self.error_class,
            determinism=self.determinism,
            flags=tuple(sorted(self.flags)),
            kernels=self.kernels,
            stage_seconds={k: round(v, 3) for k, v in self.stage_seconds.items()},
            verifier=f"{VERIFIER} tolerance:{tolerance.policy_sha256()[:12]}",
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )


def _cleaned(value: Any) -> Any:
    return clean(value) if isinstance(value, str) else value


def clean(text: str) -> str:
    """Text without control characters (newlines and tabs stay): nothing of a candidate's moves a cursor.

    Lone surrogates go too: JSON may bring them, and they cannot be written as UTF-8.
    """
    return "".join(ch if ch in "\n\t" or ch.isprintable() else "�" for ch in text)
