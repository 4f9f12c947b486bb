"""The `kernelproof` command: registers the commands and turns errors into messages and exit codes.

A command starts fast: only its own module is imported, and this imports what it needs inside its functions.
Exit codes: 0 done; 1 the work found failures the user asked to be told of; 2 usage; 3 environment or server;
130 interrupted; 141 nobody reads the output.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer

from kernelproof.cli.commands import CommandLine, Misuse, misuse
from kernelproof.cli.options import INTERRUPTED
from kernelproof.errors import KernelproofError, MachineError, OutputClosed, UsageError
from kernelproof.version import __version__

COMMANDS = {
    "generate": "generate:generate",
    "verify": "verify:verify",
    "compare": "verify:compare",
    "import": "import_:import_",
    "leaderboard": "leaderboard:leaderboard",
    "report": "report:report",
    "serve": "report:serve",
    "export": "report:export",
    "show": "show:show",
    "reproduce": "reproduce:reproduce",
    "bundle": "reproduce:bundle",
    "tune": "tune:tune",
    "doctor": "doctor:doctor",
    "runs": "runs:runs_app",
    "problems": "problems:problems_app",
    "service": "service:service_app",
    "cache": "cache:cache_app",
    "db": "db:db_app",
}
"""Where each command is: the module below `kernelproof.cli`, and the function or group in it. In this order
the help lists them."""
MOVED = {
    "status": "runs status",
    "tag": "runs tag",
    "retract": "runs retract",
    "rejudge": "runs rejudge",
    "audit": "runs audit",
    "prompt": "problems prompt",
    "serve-api": "service api",
    "workers": "service workers",
    "gpus": "service gpus",
    "callers": "service callers",
}
"""Commands that stand in a group now, by their old names: a script that uses one is told the new one."""


def command_line(names: Iterable[str] = COMMANDS) -> CommandLine:
    app = CommandLine(
        name="kernelproof",
        help="Asks language models for CUDA kernels, then proves which are right and how fast they are.",
        completes=True,
    )
    app.callback()(_root)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        found: Any = getattr(import_module(f"kernelproof.cli.{module}"), attribute)
        if isinstance(found, CommandLine):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _needed(words: list[str]) -> Iterable[str]:
    """The commands that these words can be about: the one that they begin with, else all."""
    if words[:1] == ["--version"]:
        return ()
    return words[:1] if words and words[0] in COMMANDS else COMMANDS


def _say_version(requested: bool) -> None:
    if requested:
        typer.echo(f"kernelproof {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and exit."),
    ] = False,
) -> None:
    """Asks language models for CUDA kernels, then proves which are right and how fast they are."""


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
    words = sys.argv[1:]
    if _is_older_start(words):
        words = ["service", *words]
    if words and words[0] in MOVED:
        new = MOVED[words[0]]
        _complain(f"`{words[0]}` is `{new}` now: kernelproof {new} ...")
        return UsageError.exit_code
    try:
        app = command_line(_needed(words))
        code = app(words, prog_name="kernelproof", standalone_mode=False)
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
            _complain(misuse(error))
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


def _is_older_start(words: list[str]) -> bool:
    """Whether a process or a Slurm job of an older version starts a worker: both outlive an upgrade."""
    job = os.environ.get("SLURM_JOB_NAME", "")
    return words[:1] == ["workers"] and ("--until-input-ends" in words or job.startswith("kernelproof-"))


def _complain(message: str) -> None:
    """A message may quote a server, or a candidate."""
    from kernelproof.report.plain import clean

    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    text = f"kernelproof: {clean(message)}"
    if sys.stderr.isatty():
        import textwrap

        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        # Words stay whole: a path or an option in it can be copied.
        fold = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False).fill
        text = "\n".join(map(fold, text.splitlines()))
    print(text, file=sys.stderr)


def _closed() -> int:
    """Nobody reads what is printed, as after `| head -1`: that is no mistake of anybody's."""
    _drop_output()
    return OutputClosed.exit_code


def _drop_output() -> None:
    """Bytes that are still in the buffer give no second error when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
