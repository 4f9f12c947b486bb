"""Wrong programs and honest ones, made of problems by program: which does the judge accept?

`recipes` says what a problem's mutants and twins are, `parts` is what they are made of, `deciding` which are
worth a verdict, `judging` asks for it, `showing` prints the table. Begin with `__main__`.
"""

from benchmarks.mutants.showing import show

__all__ = ["show"]
