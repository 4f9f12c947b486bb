"""Finds the file and the definition that `module:Name` or `FILE.py:Name` stands for. Nothing is imported."""

from __future__ import annotations

import ast
import difflib
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from kernelproof.errors import UsageError
from kernelproof.problems.importing.needed import SourceFile
from kernelproof.pysource import Function, find_class, import_time
from kernelproof.workspace import user_path

_NAMED = re.compile(r"(?P<where>.+):(?P<name>[^\W\d]\w*)", re.DOTALL)
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def split(text: str) -> tuple[str, str] | None:
    """`("layers.py", "Block")` of `layers.py:Block`; None where it is not of that form."""
    found = _NAMED.fullmatch(text)
    return (found["where"], found["name"]) if found else None


def find_file(where: str) -> Path:
    """The source file that a path or a module's name stands for. Raises UsageError where there is none.

    Python's own finder looks for it, in the current directory first. Packages on the way are not imported,
    which `importlib.util.find_spec` would do.
    """
    if where.endswith(".py") or "/" in where:
        path = user_path(where)
        if not path.is_file():
            raise UsageError(f"{path} does not exist, or is no file; give FILE.py:NAME or MODULE:NAME")
        return path
    if not _MODULE.fullmatch(where):
        raise UsageError(
            f"{where!r} is neither a .py file nor a module's name; give FILE.py:NAME or MODULE:NAME"
        )
    search: list[str] = [str(Path.cwd()), *sys.path]
    origin: str | None = None
    for part in where.split("."):
        spec = PathFinder.find_spec(part, search)
        if spec is None:
            raise UsageError(
                f"no module {where!r} is found here ({part} is not there); give the file: FILE.py:NAME"
            )
        origin = spec.origin
        search = list(spec.submodule_search_locations or [])
    if origin is None or not origin.endswith(".py"):
        raise UsageError(f"module {where} has no Python source; give the file that defines it: FILE.py:NAME")
    return Path(origin)


def find_model(file: SourceFile, name: str) -> ast.ClassDef:
    """The class that `name` is in the file. Raises UsageError where it is none."""
    found = find_class(file.tree, name)
    if found is None:
        raise UsageError(
            _missing(file, name, "class", [n for n in _classes(file) if find_class(file.tree, n)])
        )
    return found


def find_function(file: SourceFile, name: str) -> ast.FunctionDef:
    """The function `name` of the file. Raises UsageError where it is none, or needs arguments."""
    functions = {each.name: each for each in import_time(file.tree.body) if isinstance(each, Function)}
    found = functions.get(name)
    if found is None:
        raise UsageError(_missing(file, name, "function", list(functions)))
    if not isinstance(found, ast.FunctionDef):
        raise UsageError(f"{file.path}:{found.lineno}: {name} is async; give a plain function")
    arguments = found.args
    if len(arguments.posonlyargs + arguments.args) > len(arguments.defaults) or None in arguments.kw_defaults:
        raise UsageError(
            f"{file.path}:{found.lineno}: {name} is called without arguments; give its parameters defaults"
        )
    return found


def _classes(file: SourceFile) -> list[str]:
    return [each.name for each in import_time(file.tree.body) if isinstance(each, ast.ClassDef)]


def _missing(file: SourceFile, name: str, kind: str, there: list[str]) -> str:
    for node in import_time(file.tree.body):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    origin = "." * node.level + (node.module or "")
                    return (
                        f"{file.path}:{node.lineno}: {name} is imported there from {origin}; "
                        "give the file or module that defines it"
                    )
    near = difflib.get_close_matches(name, there, n=1) or there[:5]
    hint = f"it has {', '.join(near)}" if near else f"it defines no {kind} at module level"
    return f"{file.path} defines no {kind} {name} at module level; {hint}"
