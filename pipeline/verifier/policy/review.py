"""Asking every rule about one candidate."""

from __future__ import annotations

from kernelproof.types import Finding, Problem
from kernelproof.verifier.policy import behaviour, contract, extension
from kernelproof.verifier.policy.program import Program
from kernelproof.verifier.policy.rule import Rule

RULES: tuple[Rule, ...] = (*contract.RULES, *extension.RULES, *behaviour.RULES)
"""All rules, in the order in which they are asked; `syntax_error` is the first."""


def review(source: str, problem: Problem, backend: str) -> tuple[Finding, ...]:
    """Every finding about the source, read and never run. Errors end the attempt; the rest informs.

    Total: any text gives findings or none, never an exception.
    """
    program = Program(source, problem, backend)
    rules = RULES[:1] if program.error else RULES
    return tuple(finding for rule in rules for finding in rule.findings(program))
