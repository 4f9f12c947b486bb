"""What a rule is: a small function over a program, with name, severity and a sentence of documentation."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernelproof.types import Finding, Severity, Status
from kernelproof.verifier.policy.program import Program
from kernelproof.verifier.status_rules import Cause

MAX_HITS = 5
"""Most findings of one rule: the sixth says nothing new."""
_MAX_EVIDENCE = 200


@dataclass(frozen=True)
class Hit:
    """One place where a rule matched. `evidence` defaults to the source text of `node`."""

    message: str
    node: ast.AST | None = None
    evidence: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Rule:
    """One rule. `cause` is why the attempt ends, for severity error."""

    name: str
    severity: Severity
    description: str
    check: Callable[[Program], Iterator[Hit]]
    cause: Cause | None = None

    @property
    def status(self) -> Status | None:
        """The status of the attempt, for severity error."""
        return self.cause.status if self.cause else None

    def findings(self, program: Program) -> Iterator[Finding]:
        """What the rule finds in the program: one finding a line, five at most."""
        lines: set[int | None] = set()
        for hit in self.check(program):
            line = hit.line or getattr(hit.node, "lineno", None)
            if line in lines or len(lines) == MAX_HITS:
                continue
            lines.add(line)
            evidence = hit.evidence or (program.text_of(hit.node) if hit.node is not None else "")
            yield Finding(
                rule=self.name,
                severity=self.severity,
                message=hit.message,
                line=line,
                evidence=evidence[:_MAX_EVIDENCE],
                status=self.status,
            )


RuleFunction = Callable[[Program], Iterator[Hit]]


class Registry(list[Rule]):
    """Rules in the order in which they are asked."""

    def rule(
        self, severity: Severity, description: str, cause: Cause | None = None
    ) -> Callable[[RuleFunction], RuleFunction]:
        """Registers the decorated function as a rule of its own name."""

        def register(check: RuleFunction) -> RuleFunction:
            self.append(Rule(check.__name__, severity, description, check, cause))
            return check

        return register
