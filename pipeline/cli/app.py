"""The `kernelproof` command: registers the commands and turns errors into messages and exit codes.

Command modules import what they need inside their functions, so that `--help` stays fast.
Exit codes: 0 done; 1 the work found failures the user asked to be told of; 2 usage; 3 environment or server;
130 interrupted; 141 nobody reads the output.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from kernelproof.cli.audit import audit
from kernelproof.cli.bundle import bundle
from kernelproof.cli.cache import cache_app
from kernelproof.cli.callers import callers_app
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.db import db_app
from kernelproof.cli.doctor import doctor
from kernelproof.cli.export import export
from kernelproof.cli.generate import generate
from kernelproof.cli.gpus import gpus
from kernelproof.cli.import_ import import_
from kernelproof.cli.leaderboard import leaderboard
from kernelproof.cli.mistakes import Misuse, told
from kernelproof.cli.options import INTERRUPTED
from kernelproof.cli.problems import problems_app
from kernelproof.cli.prompt import prompt
from kernelproof.cli.rejudge import rejudge
from kernelproof.cli.report import report
from kernelproof.cli.reproduce import reproduce
from kernelproof.cli.retract import retract
from kernelproof.cli.serve import serve
from kernelproof.cli.serve_api import serve_api, workers
from kernelproof.cli.show import show
from kernelproof.cli.status import status
from kernelproof.cli.tag import tag
from kernelproof.cli.tune import tune
from kernelproof.cli.verify import verify
from kernelproof.errors import KernelproofError, MachineError, OutputClosed
from kernelproof.version import __version__

app = CommandLine(
    name="kernelproof",
    help="Asks language models for CUDA kernels, then proves which are right and how fast they are.",
    completes=True,
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kernelproof {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and exit."),
    ] = False,
) -> None:
    """Asks language models for CUDA kernels, then proves which are right and how fast they are."""


app.command()(generate)
app.command()(verify)
app.command("import")(import_)
app.command()(leaderboard)
app.command()(report)
app.command()(serve)
app.command()(export)
app.command()(show)
app.command()(status)
app.command()(reproduce)
app.command()(bundle)
app.command()(audit)
app.command()(rejudge)
app.command()(tune)
app.command()(retract)
app.command()(tag)
app.add_typer(problems_app, name="problems")
app.command()(prompt)
app.command()(doctor)
app.command("serve-api")(serve_api)
app.command()(workers)
app.command()(gpus)
app.add_typer(callers_app, name="callers")
app.add_typer(cache_app, name="cache")
app.add_typer(db_app, name="db")


def main() -> None:
    """Entry point of the console script."""
    import gc

    # Importing makes objects by the ten thousand, and none of them is garbage.
    gc.set_threshold(100_000, 50, 50)
    code = _run()
    # Else Python looks for garbage once more while it ends: after 2,000 questions in flight, for a second.
    gc.freeze()
    sys.exit(code)


def _run() -> int:
    """The exit code, after every mistake and every trouble was told in a line."""
    try:
        code = app(prog_name="kernelproof", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as stop:  # how typer ends where nobody reads, and after it installed completion
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _closed()
    except BrokenPipeError:
        return _closed()
    except OutputClosed as error:
        _complain(str(error))
        return _closed()
    except Misuse as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            _complain(told(error))
        return 2
    except KernelproofError as error:
        _complain(str(error))
        return error.exit_code
    except typer.Abort:
        _complain("stopped; nothing was done")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        place = f" for {error.filename}" if error.filename else ""
        _complain(f"no space is left{place}; make room and run the same command again")
        _drop_output()
        return MachineError.exit_code


def _complain(message: str) -> None:
    """A message may quote a server, or a candidate."""
    from kernelproof.report.plain import clean

    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    print(f"kernelproof: {clean(message)}", file=sys.stderr)


def _closed() -> int:
    """Nobody reads what is printed, as after `| head -1`: that is no mistake of anybody's."""
    _drop_output()
    return OutputClosed.exit_code


def _drop_output() -> None:
    """Bytes that are still in the buffer give no second error when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
