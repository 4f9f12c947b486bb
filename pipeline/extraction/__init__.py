"""Finding the candidate in a response: `extract(response)`, and `extract_source(text)` for a file.

Pure: reads text with `ast`, runs nothing. docs/rationale/extraction.md says in which order it looks and why.
"""

from pipeline.extraction.extract import extract, extract_source
from pipeline.extraction.remarks import WARNINGS

__all__ = ["WARNINGS", "extract", "extract_source"]
