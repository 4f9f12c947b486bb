"""Groups of commands, and commands, with the manners that all of ours have.

- `-h` is `--help`.
- An option that is given twice is an error, unless it may be repeated. Otherwise the last one would win, and
  the first would be lost without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from kernelproof.cli.declaring import takes_options
from kernelproof.errors import UsageError

# Typer exports one of the parser's errors, and not the class that they all have.
Misuse: Any = typer.BadParameter.__base__
"""Raised by the parser for a command line that it cannot read."""


_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)\.?")


def misuse(error: Any) -> str:
    """Why a command line cannot be read, in a line."""
    # Typer has pydantic call some of our parsers, which puts words of its own in front.
    words = " ".join(error.format_message().replace(": Value error, ", ": ", 1).split())
    if (extra := _EXTRA.fullmatch(words)) and error.ctx is not None:
        command = error.ctx.command_path
        return f"too much: {extra[1]}; {command} --help says what it takes"
    return words


class _Manners:
    """Manners that commands and groups share."""

    def make_parser(self, ctx: Any) -> Any:
        """Raises UsageError, when it parses, for an option that is given twice."""
        return _refusing_repeats(super().make_parser(ctx), ctx)  # type: ignore[misc]

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Reads the arguments; only roughly while a shell completes them."""
        _unread_for_completion(self, ctx)
        return super().parse_args(ctx, args)  # type: ignore[misc]


class Command(_Manners, TyperCommand):
    """A command that takes each option once."""


class Group(_Manners, TyperGroup):
    """A command with commands below it."""


class CommandLine(typer.Typer):
    """A group of commands to which functions are added as with `typer.Typer`."""

    def __init__(self, *, name: str | None = None, help: str, completes: bool = False) -> None:  # noqa: A002
        """`completes`: whether it offers to install completion in a shell."""
        super().__init__(
            name=name,
            help=help,
            cls=Group,
            no_args_is_help=True,
            add_completion=completes,
            context_settings={"help_option_names": ["-h", "--help"]},
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Adds a function, whose options are declared as in `kernelproof.cli.declaring`, as a command."""
        add = super().command(name, **{"cls": Command, **settings})
        return lambda function: add(takes_options(function))


def _refusing_repeats(parser: Any, ctx: Any) -> Any:
    parse = parser.parse_args

    def checked(args: list[str]) -> Any:
        words = list(args)
        parsed = parse(args)
        if not ctx.resilient_parsing:
            _refuse_repeats(parsed[2], words)
        return parsed

    parser.parse_args = checked
    return parser


def _unread_for_completion(command: Any, ctx: Any) -> None:
    """Leaves words as they are while a shell completes them: reading them as values would import pydantic."""
    if ctx.resilient_parsing:
        for parameter in command.get_params(ctx):
            parameter.process_value = lambda ctx, value: value


def _refuse_repeats(order: Sequence[Any], words: Sequence[str]) -> None:
    """`order`: the parameters as they were met in `words`."""
    for parameter in dict.fromkeys(order):
        times = sum(each is parameter for each in order)
        if parameter.param_type_name != "option" or parameter.multiple or parameter.count or times < 2:
            continue
        values = _values_of(parameter, words)
        shown = f" ({', '.join(values[:-1])} and {values[-1]})" if len(set(values)) > 1 else ""
        often = "twice" if times == 2 else f"{times} times"
        raise UsageError(f"{option_name(parameter)} was given {often}{shown}; give it once")


def _values_of(option: Any, words: Sequence[str]) -> list[str]:
    """The values that an option was given, or which of its names, where it takes no value."""
    values = []
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name not in (*option.opts, *option.secondary_opts):
            continue
        if option.is_flag:
            values.append(name)
        else:
            values.append(value if equals else " ".join(words[number + 1 : number + 1 + option.nargs]))
    return values


def option_name(option: Any) -> str:
    """The first of an option's long names: `--samples`."""
    return str(next((opt for opt in option.opts if opt.startswith("--")), option.opts[0]))
