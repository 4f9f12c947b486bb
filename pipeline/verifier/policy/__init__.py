"""Static rules over a candidate's source: `review(source, problem, backend)` and the list of `RULES`.

Reads the source with `ast` and never runs it. Static findings inform and the referee decides; only a program
that cannot be called as the problem asks ends here. docs/reference/policy.md lists the rules.
"""

from kernelproof.verifier.policy.review import RULES, review
from kernelproof.verifier.policy.rule import Rule

__all__ = ["RULES", "Rule", "review"]
