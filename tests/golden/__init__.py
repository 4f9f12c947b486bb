"""What is stored and what is promised, in files that do not move with the code.

`files/` was made once, by `python -m tests.golden.make`. The tests read it as it is. A file changes only with
a deliberate, documented change of what is stored or promised: docs/reference/tests.md, "Golden files".
"""
