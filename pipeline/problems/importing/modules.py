"""A problem from a class of the user's own: its source, what it needs of its file, and inputs that are said.

The class is read, not imported. `Model` of the problem is a subclass that changes nothing, so that no text of
the user's has to be rewritten.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from kernelproof.errors import UsageError
from kernelproof.problems.importing import inputs as said_inputs
from kernelproof.problems.importing.drafts import Draft, split_name
from kernelproof.problems.importing.locating import find_file, find_function, find_model, split
from kernelproof.problems.importing.needed import Needed, SourceFile, needed
from kernelproof.pysource import Function, find_method
from kernelproof.wording import counted

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OURS = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True)
class ModuleRequest:
    """What the user says of the class."""

    source: str
    """`module:Class` or `FILE.py:Class`."""
    init: str = "[]"
    """The arguments of its constructor, a JSON list."""
    inputs: str | None = None
    """The arguments of forward, a JSON list of shapes and more."""
    example: str | None = None
    """`module:function` or `FILE.py:function`, which returns the arguments of forward."""
    name: str | None = None
    """Name of the problem, with a number in front where that is wanted; else the class's name."""
    level: int | None = None
    """N of its folder `levelN`."""


def is_module(source: str) -> bool:
    """Whether a SOURCE names a class."""
    return split(source) is not None


def draft_of_module(request: ModuleRequest) -> Draft:
    """The problem that the request asks for. Raises UsageError for anything that does not fit together."""
    if (request.inputs is None) == (request.example is None):
        raise UsageError(
            f"{request.source} needs inputs: give --inputs '{said_inputs.INPUTS_FORM}', "
            "or --example FILE.py:FUNCTION, and not both"
        )
    arguments = said_inputs.init_arguments(request.init)
    made = None if request.inputs is None else said_inputs.inputs(request.inputs)
    where, name = split(request.source) or ("", "")
    file = SourceFile.read(find_file(where))
    model = find_model(file, name)
    _require_count(file, find_method(file.tree, model, "__init__"), len(arguments), f"{name}()", "--init")
    if made is not None:
        _require_count(
            file, find_method(file.tree, model, "forward"), len(made), f"{name}.forward", "--inputs"
        )
        parts, getter = [needed(file, name)], _function("get_inputs", f"[{', '.join(made)}]")
    else:
        parts, getter = _with_example(file, name, request.example or "")
    _require_free_names(parts, name, getter)
    chosen = request.name or _HUMP.sub("_", name).lower()
    number, called = split_name(chosen, "--name" if request.name else request.source)
    blocks = [
        _head(parts, ast.get_docstring(model), f"{name} of {file.path.name}."),
        *(part.text(parts[0] if index else None) for index, part in enumerate(parts)),
        _model(name),
        getter,
        _function("get_init_inputs", f"[{', '.join(arguments)}]"),
    ]
    source = "\n\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n"
    if parts[0].pieces[0].is_import:
        head = blocks[0].strip("\n")
        source = head + ("\n" if head.endswith("import torch") else "\n\n") + source[len(head) :].lstrip("\n")
    return Draft(level=request.level, number=number, name=called, source=source, said=request.source)


def _with_example(file: SourceFile, name: str, example: str) -> tuple[list[Needed], str]:
    """What class and function need, and the text of `get_inputs`."""
    found = split(example)
    if found is None:
        raise UsageError(f"--example {example!r}: give FILE.py:FUNCTION or MODULE:FUNCTION")
    where, function = found
    other = SourceFile.read(find_file(where))
    find_function(other, function)
    if other.path.samefile(file.path):
        parts = [needed(file, name, function)]
    else:
        parts = [needed(file, name), needed(other, function)]
        _require_agreement(*parts)
    getter = "" if function == "get_inputs" else _function("get_inputs", f"list({function}())")
    return parts, getter


def _require_agreement(first: Needed, second: Needed) -> None:
    """Names that both files bind must mean the same in one file."""
    for name in sorted(first.binds & second.binds):
        if first.meaning(name) != second.meaning(name):
            raise UsageError(
                f"{name} is one thing in {first.file.path} and another in {second.file.path}; "
                "rename one, or put the function into the class's file"
            )


def _require_free_names(parts: list[Needed], name: str, getter: str) -> None:
    """The problem's own three names must not mean something else in what is copied."""
    allowed = {name} if getter else {name, "get_inputs"}
    for part in parts:
        for taken in _OURS:
            if taken in part.binds and taken not in allowed:
                raise UsageError(
                    f"{part.file.path} has a {taken} of its own that is needed; rename it, since a problem "
                    f"defines {', '.join(_OURS)} itself"
                )
        if "torch" in part.binds and not all(
            each.startswith("import torch") for each in part.meaning("torch")
        ):
            raise UsageError(f"{part.file.path} binds the name torch to something else; rename that")


def _require_count(file: SourceFile, function: Function | None, count: int, what: str, option: str) -> None:
    """Whether `count` arguments fit, as far as the file shows the function."""
    if function is None:
        return
    arguments = function.args
    names = [each.arg for each in arguments.posonlyargs + arguments.args][1:]
    least = len(names) - len(arguments.defaults)
    by_name = [
        each.arg
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    place = f"{file.path}:{function.lineno}: {what}"
    if by_name:
        raise UsageError(f"{place} needs {by_name[0]} by name, and a problem gives all by position")
    if count < least or (count > len(names) and arguments.vararg is None):
        takes = ", ".join(names) or "nothing"
        raise UsageError(f"{place} takes {takes}, and {option} gives {counted(count, 'argument')}")


def _head(parts: list[Needed], docstring: str | None, otherwise: str) -> str:
    first = (docstring or "").strip().splitlines()[:1]
    summary = first[0].strip() if first else ""
    if not summary or '"' in summary or "\\" in summary or not summary.isprintable():
        summary = otherwise
    lines = [f'"""{summary}"""', ""]
    future = sorted({name for part in parts for name in part.future})
    if future:
        lines += [f"from __future__ import {', '.join(future)}", ""]
    if not any("import torch" in part.meaning("torch") for part in parts):
        lines += ["import torch"]
    return "\n".join(lines)


def _model(name: str) -> str:
    if name == "Model":
        return ""
    return f'class Model({name}):\n    """{name}, under the name that a problem has."""'


def _function(name: str, value: str) -> str:
    return f"def {name}():\n    return {value}"
