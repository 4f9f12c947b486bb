"""The `kernelproof` command: registers the commands and turns errors into messages and exit codes.

Command modules import what they need inside their functions, so that `--help` stays fast.
Exit codes: 0 done; 1 the work found failures the user asked to be told of; 2 usage; 3 environment.
"""

from __future__ import annotations

import sys

import typer

from pipeline.cli.cache import cache_app
from pipeline.cli.doctor import doctor
from pipeline.cli.generate import generate
from pipeline.cli.leaderboard import leaderboard
from pipeline.cli.problems import problems_app
from pipeline.cli.prompt import prompt
from pipeline.cli.reproduce import reproduce
from pipeline.cli.show import show
from pipeline.cli.verify import verify

app = typer.Typer(
    name="kernelproof",
    help="Asks language models for CUDA kernels, then proves which are right and how fast they are.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


app.command()(generate)
app.command()(verify)
app.command()(leaderboard)
app.command()(show)
app.command()(reproduce)
app.add_typer(problems_app, name="problems")
app.command()(prompt)
app.command()(doctor)
app.add_typer(cache_app, name="cache")


def main() -> None:
    """Entry point of the console script."""
    import errno
    import gc
    import os

    from pipeline.errors import KernelproofError, MachineError

    # Importing makes objects by the ten thousand, and none of them is garbage.
    gc.set_threshold(100_000, 50, 50)

    try:
        app(prog_name="kernelproof")
    except KernelproofError as error:
        print(f"kernelproof: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"kernelproof: {error}; make room and run the same command again", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # bytes still in the buffer give no second error
        sys.exit(MachineError.exit_code)
