"""Static rules over a candidate's source: `review(source, problem, backend)` asks every rule of `RULES`.

Reads the source with `ast` and never runs it. Static findings inform and the referee decides; only a program
that cannot be called as the problem asks ends here. docs/reference/policy.md lists the rules.

The rules are in `contract` (is the model there, can it be called, and does its inline extension fit
together?) and `behaviour` (what does the code reach for?). To add one, write a function there with
`@RULES.rule`. `program` says what a rule is, and has the parsed candidate that it looks at.
"""

from __future__ import annotations

from kernelproof.types import Finding, Problem
from kernelproof.verifier.policy import behaviour, contract
from kernelproof.verifier.policy.program import Program, Rule

__all__ = ["RULES", "Rule", "review"]

RULES: tuple[Rule, ...] = (*contract.RULES, *behaviour.RULES)
"""All rules, in the order in which they are asked; `syntax_error` is the first."""


def review(source: str, problem: Problem, backend: str) -> tuple[Finding, ...]:
    """Every finding about the source, read and never run. Errors end the attempt; the rest informs.

    Total: any text gives findings or none, never an exception.
    """
    program = Program(source, problem, backend)
    rules = RULES[:1] if program.error else RULES
    return tuple(finding for rule in rules for finding in rule.findings(program))
