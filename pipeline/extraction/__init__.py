"""Finding the candidate in a text: `extract(response)`; a file's text is `Response(text=text)`.

Begin with `extract`, which takes a text through all steps: `normalise`, `thinking` (set aside), `search` (the
program that the model means, among `blocks`, each judged by `completeness`; a diff of the program that it was
shown is in `blocks`, too), `reasons` (why there is none). `read_plans` finds the plans in an answer about
plans.

Pure: reads text with `ast`, runs nothing. docs/rationale/extraction.md says in which order it looks and why.
"""

from kernelproof.extraction.extract import extract, extract_plans, read_plans
from kernelproof.extraction.normalise import normalise
from kernelproof.extraction.reasons import WARNINGS
from kernelproof.extraction.thinking import without_thinking

__all__ = ["WARNINGS", "extract", "extract_plans", "normalise", "read_plans", "without_thinking"]
