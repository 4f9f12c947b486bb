"""The results as web pages: `kernelproof report` and `show --html` write them to files, `kernelproof serve`
and the evaluation service answer with them.

Begin at `pages`, which has a function for each page. `facts` asks the store and writes the sentences,
`rendering` fills templates and colours programs, `charts` draws, `figures` draws the forest plot and writes
figures to files. `site` keeps the pages of a database,
`result_server` has their addresses, `query` reads filters from an address.
"""

from __future__ import annotations

from kernelproof.errors import require_packages


def require() -> None:
    """Raises MachineError when a package of the extra `serve` is missing."""
    require_packages("the result server", "serve", "starlette", "uvicorn")
