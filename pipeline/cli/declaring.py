"""How commands declare their options: `Option` and `Argument` beside a parameter's type, and classes of them.

Example: `again: Annotated[bool, Option("Verify all anew.")] = False` is the flag `--again`, and
`trials: Annotated[int, Option("Correctness trials.", TRIALS)] = 3` is `--trials <number>` within its bounds.
Nothing here imports pydantic, so `--help` stays fast.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from difflib import get_close_matches
from enum import EnumType
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from kernelproof.choices import Bounds, words_of
from kernelproof.workspace import user_path


@dataclass(frozen=True)
class Option:
    """Beside a parameter's type: the option that sets it. The type says how its value is read: a flag, a word
    of an enumeration or a `Literal`, a number, a path, a day. Any other text must not be empty."""

    help: str
    bounds: Bounds | None = None
    names: tuple[str, ...] = ()
    metavar: str | None = None
    words: tuple[str, ...] = ()
    """Those to choose from, where the type does not say them."""
    parser: Callable[[str], Any] | None = None
    offered: Callable[..., list[str]] | None = None
    show_default: bool | str = True

    def info(self, kind: Any, name: str, default: Any) -> Any:
        """What typer is told. `kind`, `name`, `default`: of the parameter."""
        kind = _of_one(kind)
        names, offered = self.names, self.offered
        if kind is bool:
            flag = default is False and not names
            return self._typer_info([f"--{name.replace('_', '-')}"] if flag else names)
        words = self.words or (words_of(kind) if _is_choice(kind) else ())
        if words:
            parser, metavar = _word_of(kind, words), f"<{'|'.join(words)}>"
            offered = offered or (lambda incomplete: [word for word in words if word.startswith(incomplete)])
        elif self.parser:
            parser, metavar = self.parser, None
        elif self.bounds:
            parser, metavar = _number_within(self.bounds), "<number>"
        elif kind is Path:
            parser, metavar = parsed_path, "<path>"
        elif kind is date:
            parser, metavar = _day, "<YYYY-MM-DD>"
        else:
            parser, metavar = nonempty_text, None
        return self._typer_info(names, parser=parser, metavar=self.metavar or metavar, autocompletion=offered)

    def _typer_info(self, names: Any, **more: Any) -> Any:
        return typer.Option(*names, help=self.help, show_default=self.show_default, **more)


class Argument(Option):
    """The same for a word that has no name before it."""

    def _typer_info(self, names: Any, **more: Any) -> Any:
        more["metavar"] = self.metavar
        return typer.Argument(help=self.help, show_default=self.show_default, **more)


@dataclass(frozen=True)
class Entries:
    """Beside a dictionary's type: the options that are its entries."""

    options: list[inspect.Parameter]


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer sees it: a parameter that stands for options, by a class of them or by `Entries`,
    becomes those options."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[inspect.Parameter]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        entries = next((x for x in getattr(kind, "__metadata__", ()) if isinstance(x, Entries)), None)
        if entries:
            groups[parameter.name] = dict, entries.options
        elif is_dataclass(kind):
            groups[parameter.name] = kind, _parameters(kind)
        else:
            parameters.append(_parameter(parameter.name, kind, parameter.default))
            continue
        parameters += groups[parameter.name][1]

    def run(**given: Any) -> None:
        for name, (make, options) in groups.items():
            given[name] = make(**{option.name: given.pop(option.name) for option in options})
        command(**given)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameters(options: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    defaults = {
        field.name: inspect.Parameter.empty if field.default is MISSING else field.default
        for field in fields(options)
    }
    return [_parameter(name, hints[name], default) for name, default in defaults.items()]


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    option = next((x for x in getattr(kind, "__metadata__", ()) if isinstance(x, Option)), None)
    if option:
        kind = Annotated[kind.__origin__, option.info(kind.__origin__, name, default)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _of_one(kind: Any) -> Any:
    """The type of one value: `X` for `X | None` and for a list of them."""
    while get_origin(kind) in (Union, UnionType, list):
        kind = get_args(kind)[0]
    return kind


def _is_choice(kind: Any) -> bool:
    return isinstance(kind, EnumType) or get_origin(kind) is Literal


def _word_of(kind: Any, words: tuple[str, ...]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        if text not in words:
            near = get_close_matches(text, words, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, words))}{hint}")
        return kind(text) if isinstance(kind, EnumType) else text

    return parsed


def _number_within(bounds: Bounds) -> Callable[[str | float], float]:
    def parsed(text: str | float) -> float:
        if not isinstance(text, str):
            return text  # the default
        try:
            return bounds.number(text)
        except ValueError as error:
            raise typer.BadParameter(f"{error}.") from None

    return parsed


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no day; give one like 2026-01-31.") from None


def nonempty_text(text: str) -> str:
    """Parses names and filters. An empty one comes from a script's unset variable, and names nothing."""
    if not text:
        raise typer.BadParameter("it is empty; give a value, or leave the option out.")
    return text


def parsed_path(text: str) -> Path:
    """Parses every path. To `Path` an empty one is the current directory, which nobody meant."""
    if not text:
        raise typer.BadParameter("the path is empty; for the current directory give a dot.")
    path = user_path(text)
    try:
        readable = not path.exists() or os.access(path, os.R_OK)
    except OSError as error:
        raise typer.BadParameter(f"path {text!r} cannot be used: {error.strerror}.") from None
    if not readable:
        raise typer.BadParameter(f"path {text!r} is not readable.")
    return path
