"""Finding the candidate in a text: `extract(response)`; a file's text is `Response(text=text)`.

Pure: reads text with `ast`, runs nothing. docs/rationale/extraction.md says in which order it looks and why.
"""

from kernelproof.extraction.extract import extract
from kernelproof.extraction.normalise import normalise
from kernelproof.extraction.remarks import WARNINGS

__all__ = ["WARNINGS", "extract", "normalise"]
