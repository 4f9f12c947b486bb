"""What is wrong with a command line, in a line of ours. The words of the parser that found it never show."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import typer

from kernelproof.cli.commands import option_name

# Typer exports one of the parser's errors, and not the class that they all have.
Misuse: Any = typer.BadParameter.__base__
"""Raised by the parser for a command line that it cannot read."""


def told(error: Any) -> str:
    """A line for the user: what is wrong, and what to do."""
    command = error.ctx.command_path if error.ctx is not None else "kernelproof"
    match type(error).__name__:
        case "NoSuchOption":
            return _unknown(error, command)
        case "MissingParameter":
            return f"{_name(error.param)} is missing; {command} --help says what it is"
        case "BadParameter":
            return _bad(error)
        case "BadOptionUsage":
            wants = "takes no value" if "does not take" in error.message else "needs a value"
            return f"{error.option_name} {wants}"
    return _other(error, command)


def _unknown(error: Any, command: str) -> str:
    name = error.option_name
    options = error.ctx.command.get_params(error.ctx)
    known = [opt for each in options for opt in (*each.opts, *each.secondary_opts) if opt.startswith("--")]
    letter = re.fullmatch(r"-(\w)", name)
    alike = [opt for opt in known if letter and opt.startswith(f"--{letter[1]}")]
    near = get_close_matches(name.lstrip("-"), [opt.removeprefix("--") for opt in known], 1)
    hint = f"did you mean --{near[0]}?" if near else f"{command} --help lists what there is"
    if alike:
        hint = f"options are written in full: {', '.join(alike[:4])}{' ...' if len(alike) > 4 else ''}"
    return f"there is no option {_shown(name)}; {hint}"


def _bad(error: Any) -> str:
    name, cause = _name(error.param), error.__cause__
    if type(cause).__name__ == "ValidationError":
        from kernelproof.types.explain import explain

        # On a command line everything is text, numbers too.
        return re.sub(r"not '(-?[\d.]+)'$", r"not \1", explain(cause, {"": name}))
    said = str(error.message).rstrip(".")
    if not name:
        return said
    return f"{name} {said}" if said.startswith("must be ") else f"{name}: {said}"


def _other(error: Any, command: str) -> str:
    extra = re.search(r"unexpected extra arguments?(?:\(s\))? \((.*)\)", error.message, re.S)
    if extra:
        options = {opt for each in error.ctx.command.get_params(error.ctx) for opt in each.opts}
        word = extra[1].split()[0]
        hint = (
            f"; a problem is given as --problem {word}"
            if "--problem" in options and word.isprintable()
            else ""
        )
        return f"{command} takes no more words: {_shown(extra[1])} is too much{hint}"
    if error.message.startswith("Missing command"):
        return f"which command? {command} --help lists them"
    return str(error.message).rstrip(".")


def _name(parameter: Any) -> str:
    """As the user writes it: `--samples`, or `FILE`."""
    if parameter is None:
        return ""
    if parameter.param_type_name == "option":
        return option_name(parameter)
    return str(parameter.metavar or parameter.name.upper())


def _shown(text: str) -> str:
    """Text from the command line: as it is where that is harmless."""
    return text if text.isprintable() else repr(text)
