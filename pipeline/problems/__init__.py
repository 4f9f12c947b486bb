"""Problems: read from files with `ast`, never run here. `open_suite().find("level1/2")` finds one.

Begin with `suite` (a folder of problems) and `reading` (one file: its place, signature and sizes; or a new
one to start from). `check` has the referee examine a problem; `importing` makes suites of other sources.
"""

from kernelproof.problems.check import check_problem
from kernelproof.problems.reading import read_problem
from kernelproof.problems.suite import Suite, open_suite
from kernelproof.types.problem import Fitness, FitnessFinding

__all__ = ["Fitness", "FitnessFinding", "Suite", "check_problem", "open_suite", "read_problem"]
