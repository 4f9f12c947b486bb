"""How a problem's fitness is shown; its messages may hold what the problem's code raised."""

from __future__ import annotations

from kernelproof.problems import Fitness
from kernelproof.report.plain import say
from kernelproof.types import Problem


def print_fitness(problem: Problem, fitness: Fitness) -> None:
    """A line for the problem and one for each finding."""
    verdict = "fit" if fitness.ok else "UNFIT"
    say(f"{verdict:6}  {problem.id:12} {problem.name:34} {fitness.size:6} {fitness.seconds:6.1f} s")
    for finding in fitness.findings:
        say(f"        {finding.reason}: {finding.message}")
