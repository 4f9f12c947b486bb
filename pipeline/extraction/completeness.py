"""Judges a block: it is a complete program that defines ModelNew, or it lacks something."""

from __future__ import annotations

import ast
import html
import re
from dataclasses import dataclass
from enum import Enum, auto

from kernelproof.extraction.blocks import Block, heredocs
from kernelproof.extraction.normalise import Budget, straighten_quotes
from kernelproof.extraction.reasons import remark
from kernelproof.pysource import find_class

NAME = "ModelNew"
MAX_TRIM_FENCED = 20
"""Most lines cut from the end of a fenced block."""
MAX_TRIM_BARE = 200
"""Most lines cut where no fence says where the program ends."""
_MAX_CUTS = 4

DEFINES = re.compile(r"^[ \t]*(?:class[ \t]+ModelNew\b|ModelNew[ \t]*=)", re.MULTILINE)
"""A line that starts a definition of ModelNew: a hint before parsing, never a verdict."""
_CODE_LINE = re.compile(
    r"[A-Za-z_][\w.]*\s*(?:=(?!=)|\()|@\w|def \w+\(|class \w+\s*[(:]"
    r"|import [\w.]+|from [\w.]+ import |[)\]}'\"]"
)


LABEL = re.compile(r"\A\s*(?:python3?|py|\[python\]|[\w./-]+\.py:?|%%\w[^\n]*)[ \t]*\n", re.IGNORECASE)
"""A line before the program that is none of it: a fence's language, a file's name, a notebook's magic. As
Python it would be a name that nobody defines, or no syntax."""
NATIVE_TEXT = re.compile(r"^[ \t]*#[ \t]*include\b|\b__global__\b|\bPYBIND11_MODULE\b", re.MULTILINE)
"""A hint that a text is C++ or CUDA."""
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_BETWEEN_FENCES = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*$.*?^[ \t]*\1[^`\n]*\n", re.MULTILINE | re.DOTALL)


class Kind(Enum):
    """How a block ended its judgement."""

    COMPLETE = auto()
    PLACEHOLDER = auto()
    """ModelNew is there without a body worth running."""
    SPLIT = auto()
    """A fence ends inside a string of C++, and what goes on in another cannot be joined to it."""
    HIDDEN = auto()
    """The block parses and defines ModelNew where importing does not reach it."""
    BROKEN = auto()
    """The block ends where it should and does not parse."""
    CUT = auto()
    """The block runs to the end of the answer and stops in the middle."""
    OTHER = auto()


@dataclass(frozen=True)
class Program:
    """A judged block. `code` is what to take from it; `tree` is None where that does not parse."""

    kind: Kind
    block: Block
    code: str
    tree: ast.Module | None = None
    warnings: tuple[str, ...] = ()


def judge(block: Block, budget: Budget, *, trim: bool = False) -> Program:
    """Judges one block. With `trim`, prose that follows the program is cut off, within bounds."""
    if NAME not in block.code or block.language == "diff":
        return Program(Kind.OTHER, block, block.code)
    parsed = next((v for v in _variants(block.code, budget) if budget.tree(v[0]) is not None), None)
    if parsed is None and trim and (cut := _trimmed(block, budget)) is not None:
        parsed = (cut[0], (remark("trimmed_trailing_lines", cut[1]),))
    if parsed is not None:
        return _parsed(block, budget, *parsed)
    if not DEFINES.search(block.code) or block.language == "native":
        return Program(Kind.OTHER, block, block.code)
    kind = Kind.CUT if not block.closed and stops_in_the_middle(block.code, budget) else Kind.BROKEN
    return Program(kind, block, block.code)


def _parsed(block: Block, budget: Budget, code: str, warnings: tuple[str, ...]) -> Program:
    tree = budget.tree(code)
    assert tree is not None
    if _kind(tree) is Kind.COMPLETE and _swallows_fence(tree):
        code, warnings = _BETWEEN_FENCES.sub("", code), (*warnings, remark("fences_joined"))
        tree = budget.tree(code)
        if tree is None or _swallows_fence(tree):
            return Program(Kind.SPLIT, block, code)
    return Program(_kind(tree), block, code, tree, warnings)


def written_programs(text: str) -> list[Block]:
    """The programs among the files that a shell script in the text writes."""
    return [block for block in heredocs(text) if DEFINES.search(block.code)]


def _swallows_fence(tree: ast.Module) -> bool:
    """Whether a string of C++ holds the line of a fence: no C++ has one, so the fence ended inside the string
    and another went on."""
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
        if NATIVE_TEXT.search(text) and _FENCE_LINE.search(text):
            return True
    return False


def stops_in_the_middle(code: str, budget: Budget) -> bool:
    """True when the code does not parse because its end is missing."""
    error = budget.parse(code)
    if isinstance(error, ast.Module):
        return False
    message = error.msg or ""
    last = code.rstrip().count("\n") + 1
    return (
        "unterminated triple" in message
        or "was never closed" in message
        or "expected an indented block" in message
        or (error.lineno or 0) >= last
    )


def _variants(code: str, budget: Budget) -> list[tuple[str, tuple[str, ...]]]:
    """The code as it is, then with the changes that may make it parse, where they change anything."""
    code = LABEL.sub("", code)
    variants: list[tuple[str, tuple[str, ...]]] = [(code, ())]
    if "<" not in code and "&lt;" in code:  # HTML
        code = html.unescape(code)
        variants = [(code, (remark("normalised", "entities"),))]
    if (shifted := _dedented(code)) != code:
        variants.append((shifted, ()))
    if (straight := straighten_quotes(shifted)) != shifted:
        variants.append((straight, (remark("curly_quotes_replaced"),)))
    return variants


def _dedented(code: str) -> str:
    """The code with its first line's indent taken from every line, as far as a line has that much."""
    first = re.search(r"^([ \t]*)\S", code, re.MULTILINE)
    if first is None or not first[1]:
        return code
    return re.sub(rf"^[ \t]{{1,{len(first[1])}}}", "", code, flags=re.MULTILINE)


def _trimmed(block: Block, budget: Budget) -> tuple[str, int] | None:
    """The block's code without the prose at its end, and the number of lines cut; None when that fails.

    The parser's error line says where the prose starts. A line that is indented or looks like code is
    never cut: the answer may have been cut off there.
    """
    lines = block.code.split("\n")
    total = len(lines)
    for _ in range(_MAX_CUTS):
        result = budget.parse("\n".join(lines))
        if isinstance(result, ast.Module):
            lines = _without_stray_words(lines, result)
            code = "\n".join(lines) + "\n"
            return code, sum(bool(line.strip()) for line in block.code.split("\n")[len(lines) :])
        at = (result.lineno or 1) - 1
        rest = [line for line in lines[at:] if line.strip()][:1]
        limit = MAX_TRIM_FENCED if block.opened else MAX_TRIM_BARE
        if not rest or total - at > limit or rest[0][0].isspace() or _CODE_LINE.match(rest[0]):
            return None
        lines = "\n".join(lines[:at]).rstrip().split("\n")
    return None


def _without_stray_words(lines: list[str], tree: ast.Module) -> list[str]:
    """Without single words at the end (a heading before the prose parses as a name that nobody defines)."""
    end = len(lines)
    for statement in reversed(tree.body):
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name)):
            break
        end = statement.lineno - 1
    return "\n".join(lines[:end]).rstrip().split("\n")


def _kind(tree: ast.Module) -> Kind:
    definition = find_class(tree, NAME)
    if definition is not None:
        return Kind.PLACEHOLDER if _is_placeholder(definition) else Kind.COMPLETE
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name="ModelNew") | ast.Name(id="ModelNew", ctx=ast.Store()):
                return Kind.HIDDEN
    return Kind.OTHER


def _is_placeholder(definition: ast.ClassDef) -> bool:
    """True for a class that leaves out its code: an empty body, an empty forward, or a bare `...` inside.

    An empty class that inherits from another class than nn.Module is a program, if a short one.
    """
    bases = {
        base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "?")
        for base in definition.bases
    }
    if _is_empty(definition.body):
        return bases <= {"Module", "object"}
    for node in definition.body:
        if isinstance(node, ast.FunctionDef) and (
            _has_ellipsis(node) or (node.name == "forward" and _is_empty(node.body))
        ):
            return True
    return False


def _is_empty(body: list[ast.stmt]) -> bool:
    """True for a body of docstrings, `pass`, `...` and `raise NotImplementedError`."""
    for statement in body:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Raise(
                exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))
            ):
                continue
            case _:
                return False
    return True


def _has_ellipsis(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
        for node in ast.walk(function)
    )
