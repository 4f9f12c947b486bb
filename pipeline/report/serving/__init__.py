"""`kernelproof serve`: the report's pages over HTTP, from the database as it is now.

`asked` reads filters from an address, `opened` keeps the database open, `pages` makes pages and keeps them
as long as nothing is new, `events` tells browsers that something is, `guard` refuses what no page of ours
asks, `app` has the addresses, `running` listens.
"""

from __future__ import annotations

from kernelproof.errors import MachineError


def require() -> None:
    """Raises MachineError when the packages of the extra `serve` are missing."""
    try:
        import pygments  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise MachineError(
            f"the package {(error.name or 'starlette').replace('_', '-')} is missing; "
            "install what serving needs: pip install 'kernelproof[serve]'"
        ) from None
