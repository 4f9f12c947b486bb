"""The results as web pages: `kernelproof report` and `show --html` write them to files, `kernelproof serve`
and the evaluation service answer with them.

Begin at `pages`, which has a function for each page. `facts` asks the store and writes the sentences,
`rendering` fills templates and colours programs, `charts` draws, `figures` draws the forest plot and writes
figures to files. `site` keeps the pages of a database,
`result_server` has their addresses, `query` reads filters from an address.
"""

from __future__ import annotations

from importlib import import_module

from kernelproof.errors import MachineError, install_command


def require() -> None:
    """Raises MachineError when a package of the extra `serve` is missing."""
    for package in ("starlette", "uvicorn"):
        try:
            import_module(package)
        except ImportError:
            raise MachineError(
                f"the package {package} is missing; install what serving needs: {install_command('serve')}"
            ) from None
