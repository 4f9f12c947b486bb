"""Whether the packages of the extra `service` are installed."""

from __future__ import annotations

from importlib.util import find_spec

from kernelproof.errors import MachineError

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")


def require() -> None:
    """Raises MachineError that says how to install what is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise MachineError(
            f"the service needs {', '.join(missing)}: pip install 'kernelproof[service]', and run it again"
        )
