"""What a complete program needs that it does not bind: whether it stands alone, or is a piece or an edit."""

from __future__ import annotations

import ast
import re

from kernelproof.extraction.blocks import Block
from kernelproof.extraction.completeness import NAME, NATIVE_TEXT, Program
from kernelproof.pysource import find_class, reached_from, undefined_names

IMPORTED = {
    "torch",
    "nn",
    "F",
    "os",
    "math",
    "time",
    "np",
    "load",
    "load_inline",
    "Tensor",
    "Optional",
    "textwrap",
}
"""Names that a program without imports lacks: no other block need have been meant to define them."""
_COMPILES = re.compile(r"load|compile|raw|module|program|nvrtc", re.IGNORECASE)


def needs(tree: ast.Module) -> dict[str, int]:
    """Names bound nowhere that importing the program and ModelNew read, with the first line of each."""
    return undefined_names(tree, reached_from(tree, NAME))


def is_native(block: Block) -> bool:
    """True for a fence of C++ or CUDA: by its label, or without one by its text."""
    return block.language == "native" or (not block.language and bool(NATIVE_TEXT.search(block.code)))


def stands_for_native(tree: ast.Module, name: str) -> bool:
    """True where the program uses the name as C++ of another fence: gives it to what compiles, or calls it.

    A number, such as a size in arithmetic, is no piece of C++, whatever fences there are.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is(node.value, name):
            return True
        if isinstance(node, ast.Call):
            if _is(node.func, name):
                return True
            given = (*node.args, *(keyword.value for keyword in node.keywords))
            if _COMPILES.search(ast.unparse(node.func)[-80:]) and any(
                _is(inner, name) for each in given for inner in ast.walk(each)
            ):
                return True
    return False


def is_edit_of(later: Program, earlier: Program) -> bool:
    """True when `later` cannot run by itself and shows that it only changes `earlier`: it lacks imports that
    the other has, or its ModelNew reads attributes that only the other's sets."""
    if later.tree is None or earlier.tree is None:
        return False
    lacking, lacked = needs(later.tree).keys() & IMPORTED, needs(earlier.tree).keys() & IMPORTED
    if lacking - lacked and lacking >= lacked:
        return True
    return bool(_unset(later.tree) & _own_attributes(earlier.tree, ast.Store))


def _unset(tree: ast.Module) -> set[str]:
    """Attributes of self that ModelNew reads and nothing in the program can set: no store, method, class
    variable or string of that name."""
    model = find_class(tree, NAME)
    if model is None or not {ast.unparse(base) for base in model.bases} <= {"nn.Module", "torch.nn.Module"}:
        return set()
    known: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                known.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                known.add(name)
            case ast.Constant(value=str(name)):
                known.add(name)
    if {"__getattr__", "setattr"} & known or any(_is(node, "setattr") for node in ast.walk(tree)):
        return set()
    return _own_attributes(tree, ast.Load) - known


def _own_attributes(tree: ast.Module, context: type[ast.expr_context]) -> set[str]:
    """Names of the attributes of self that ModelNew reads, or sets."""
    model = find_class(tree, NAME)
    return {
        node.attr
        for node in (ast.walk(model) if model is not None else ())
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, context) and _is(node.value, "self")
    }


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
