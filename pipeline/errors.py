"""Errors that reach the user, named by what the user must do about them.

The command line turns each into one clear message and an exit code; anything else that reaches the
top is a bug of ours. A candidate's failure is never an exception: it is a status in a record.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


class KernelproofError(Exception):
    """An error with a message for the user: what went wrong and what to do. `exit_code` is the process's."""

    exit_code = 1


class UsageError(KernelproofError):
    """The user asked for something that does not exist or does not fit together: ask differently."""

    exit_code = 2


class NothingStored(UsageError):
    """The database is not there yet, or is empty: make results first, or name another one."""


class MachineError(KernelproofError):
    """This machine or workspace lacks something (a compiler, a sandbox, space on disk): provide it."""

    exit_code = 3


class StoreError(MachineError):
    """The database cannot be used as it is: newer schema, corrupt file, full disk, read-only directory."""


class SandboxError(MachineError):
    """No sandbox of sufficient strength can be made here."""


class DeviceUnfit(MachineError):
    """A GPU failed its canary and was quarantined: the candidate has to be judged on another GPU."""


class ProviderError(KernelproofError):
    """A model's server did not give an answer for this one sample; it may on another try.

    `retriable` says whether running the same command again can help without changing anything.
    `of_question` says that the error is about this question alone (its prompt is too long, say), and tells
    nothing of the server.
    """

    def __init__(self, message: str, *, retriable: bool = True, of_question: bool = False) -> None:
        super().__init__(message)
        self.retriable, self.of_question = retriable, of_question

    def again(self, message: str) -> ProviderError:
        """The same error in other words."""
        return ProviderError(message, retriable=self.retriable, of_question=self.of_question)


class ProviderFatal(MachineError):
    """No sample can succeed (bad key, unknown model, quota used up): the whole run stops."""


class OutputClosed(KernelproofError):
    """Nobody reads what the command prints, as after `| head -1`: it ends, as the shell's own commands do."""

    exit_code = 141


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises MachineError, with the path, for what the file system refuses meanwhile."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror or 'the disk refused it'}") from None


def require_packages(what: str, extra: str, *packages: str) -> None:
    """Raises MachineError that says how to install what is missing of the packages that `what` needs."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise MachineError(f"{what} needs {', '.join(missing)}: {install_command(extra)}, and run it again")


def install_command(extra: str) -> str:
    """The command that installs the packages of one of our extras: `pip install 'kernelproof[serve]'`.

    In a clone it is the clone's own pip, which also works where the package index has no kernelproof.
    """
    root = Path(__file__).resolve().parent.parent
    if not (root / "pyproject.toml").is_file():
        return f"pip install 'kernelproof[{extra}]'"
    pip, place = Path(sys.executable).with_name("pip"), str(root)
    if pip.is_relative_to(root) and Path().samefile(root):
        pip, place = pip.relative_to(root), "."
    return f"{pip} install -e '{place}[{extra}]'"
