"""Finding the one program in an answer (thinking already set aside) that the model means."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kernelproof.extraction.blocks import Block, Spans, fenced
from kernelproof.extraction.completeness import (
    DEFINES,
    NAME,
    NATIVE_TEXT,
    Kind,
    Program,
    judge,
    stops_in_the_middle,
    written_programs,
)
from kernelproof.extraction.normalise import Budget, normalise
from kernelproof.extraction.reasons import remark
from kernelproof.extraction.thinking import set_thinking_aside
from kernelproof.pysource import find_class, reached_from, undefined_names
from kernelproof.types import Status

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


REFERENCE = re.compile(r"^[ \t]*class[ \t]+Model\b", re.MULTILINE)
_CODE_START = re.compile(r"^[ \t]*(?:import \w|from [\w.]+ import |class \w+\s*[(:])", re.MULTILINE)
_REASONING_KEYS = frozenset({"reasoning", "reasoning_content", "reasoning_details", "thinking", "thoughts"})
_MAX_JSON_STRINGS = 8
_MAX_VERSIONS = 6
"""The number of complete programs, from the last on, that are compared to find edits of earlier ones."""


@dataclass(frozen=True)
class Selection:
    code: str | None
    method: str = "none"
    status: Status | None = None
    """Why there is no program; `extract` sets it."""
    warnings: tuple[str, ...] = ()
    to_the_end: bool = False
    """The program runs to the end of the answer: it may have been cut off where it happens to parse."""
    cut: bool = False
    """There is no program, and the answer ends inside one."""


class Search:
    """One search through one answer. `run` looks in the order that docs/rationale/extraction.md describes."""

    def __init__(self, text: str, budget: Budget) -> None:
        self._text = text
        self._budget = budget
        files = written_programs(text)
        others = (b for b in fenced(text) if not any(b.start <= file.start < b.end for file in files))
        self._blocks = sorted([*others, *files], key=lambda block: block.start)
        self._judged: list[Program] = []
        self._split: set[str] = set()

    def run(self) -> Selection:
        """The last complete program; else one that a later stage can name the fault of; else a status."""
        if (wrapped := self._in_json(whole=True)) is not None:
            return wrapped
        chosen = self._last([self._judge(block) for block in self._blocks])
        rest = chosen.block.end if chosen else 0
        if DEFINES.search(self._text, rest):
            later = self._loosely(Spans(self._text[rest:], NAME), after=chosen)
            if later is not None:
                return self._take(later, "lenient_fence")
        if chosen is not None:
            cut = any(DEFINES.search(block.code) for block in self._blocks if block.start >= rest)
            return self._take(chosen, "fence", *([remark("later_version_incomplete")] if cut else []))
        trimmed = self._last([self._judge(block, trim=True) for block in self._blocks])
        if trimmed is not None:
            return self._take(trimmed, "fence")
        if (loose := self._loosely(Spans(self._text, NAME), trim=True)) is not None:
            return self._take(loose, "lenient_fence")
        if (bare := self._bare()) is not None:
            return self._take(bare, "lenient_fence" if bare.block.closed else "bare")
        return self._in_json(whole=False) or self._fall_back()

    def _judge(self, block: Block, *, trim: bool = False) -> Program:
        program = judge(block, self._budget, trim=trim)
        self._judged.append(program)
        if program.kind is Kind.SPLIT:
            self._split.add("the rest of a string")
        return program

    def _last(self, programs: list[Program]) -> Program | None:
        """The last complete program that needs nothing from other blocks.

        One that lacks its imports, or reads what only an earlier version's `__init__` sets, is an edit of
        that version: it cannot run, so the last whole one wins over it.
        """
        whole = list(islice((p for p in reversed(programs) if self._is_whole(p)), _MAX_VERSIONS))
        for index, later in enumerate(whole):
            if not any(is_edit_of(later, earlier) for earlier in whole[index + 1 :]):
                return later
        return None

    def _is_whole(self, program: Program) -> bool:
        """Whether it needs nothing from elsewhere: only importing it and ModelNew count, since its own
        get_inputs, and what else nobody calls, are never run."""
        if program.kind is not Kind.COMPLETE or program.tree is None:
            return False
        missing = [name for name in needs(program.tree) if name not in IMPORTED]
        if not missing:
            return True
        elsewhere = self._text.replace(program.block.code, "\n", 1)
        others = (block for block in self._blocks if block.code != program.block.code)
        native = any(is_native(block) for block in others)
        split = {
            name
            for name in missing[:20]
            if _binds(elsewhere, name) or (native and stands_for_native(program.tree, name))
        }
        self._split |= split
        return not split

    def _loosely(self, spans: Spans, *, trim: bool = False, after: Program | None = None) -> Program | None:
        """The last complete program between loose fences that is no edit of the program before, if there is
        one. A program inside another's span is part of the other."""
        found: Program | None = None
        end = -1
        for blocks in spans.fenced():
            for block in blocks:
                if block.start < end:
                    break
                program = self._judge(block, trim=trim)
                if self._is_whole(program) and not (after and is_edit_of(program, after)):
                    found, end = program, block.end
                    break
        return found

    def _bare(self) -> Program | None:
        """The first complete program outside all fences."""
        for trim in (False, True):
            for blocks in Spans(self._text, NAME).bare(self._blocks):
                for block in blocks:
                    if self._is_whole(program := self._judge(block, trim=trim)):
                        return program
        return None

    def _take(self, program: Program, method: str, *notes: str) -> Selection:
        block = program.block
        warnings = [*program.warnings, *notes]
        if not block.opened and block.closed:
            warnings.append(remark("opened_without_fence"))
        if block.opened and not block.closed:
            warnings.append(remark("unclosed_fence"))
        if any(DEFINES.search(other.code) for other in self._blocks if other.end <= block.start):
            warnings.append(remark("second_version_wins"))
        if REFERENCE.search(self._text):
            warnings.append(remark("reference_echoed"))
        warnings.extend(self._remarks())
        to_the_end = not block.closed and program.code.endswith(block.code[-80:])
        return Selection(program.code, method, None, tuple(warnings), to_the_end)

    def _remarks(self) -> Iterator[str]:
        if any(program.kind is Kind.PLACEHOLDER for program in self._judged):
            yield remark("placeholder_skipped")
        if self._split:
            yield remark("split_over_blocks", ", ".join(sorted(self._split)))
        if any(block.language == "diff" for block in self._blocks):
            yield remark("diff_skipped")

    def _fall_back(self) -> Selection:
        """No complete program: cut off, or a faulty one whose fault a later stage names, or none at all."""
        warnings = tuple(self._remarks())
        spans = Spans(self._text, NAME)
        openings = [*reversed(list(spans.fenced())), *spans.bare(self._blocks)]
        shortest = [blocks[0] for blocks in openings if blocks and not self._split]
        programs = [self._judge(block) for block in shortest]
        if self._is_cut() or any(program.kind is Kind.CUT for program in programs):
            return Selection(None, warnings=warnings, cut=True)
        for program in programs:
            method = "fence" if program.block.opened else "bare"
            if program.kind is Kind.HIDDEN:
                return Selection(program.code, method, None, (*warnings, remark("model_new_not_top_level")))
            if program.kind is Kind.BROKEN and _is_python(program.block):
                return Selection(program.code, method, None, (*warnings, remark("does_not_parse")))
        return Selection(None, warnings=warnings)

    def _is_cut(self) -> bool:
        """True when the answer ends inside a block of Python, fenced or not."""
        if self._blocks:
            last = self._blocks[-1]
            code = last.code
            if last.closed or last.language not in {"python", ""} or not _CODE_START.search(code):
                return False
            return last.language == "python" or stops_in_the_middle(code, self._budget)
        start = _CODE_START.search(self._text)
        return start is not None and _ends_in_code(self._text[start.start() :], self._budget)

    def _in_json(self, *, whole: bool) -> Selection | None:
        """The program in a JSON value's strings: of the whole answer, or of a fence or object within it."""
        if whole:
            values = [_value(self._text, self._budget)]
        else:
            blocks = (block for block in self._blocks if block.language in {"json", "python", ""})
            values = [_value(block.code, self._budget) for block in blocks if NAME in block.code]
            values += [_value(self._text[m.end() :], self._budget) for m in _objects(self._text)]
        strings = [text for value in values for text in _strings(value) if NAME in text]
        for text in reversed(strings[-_MAX_JSON_STRINGS:]):
            clean, warnings = normalise(text)
            if len(clean) >= len(self._text):
                continue
            answer = set_thinking_aside(clean, self._budget)
            found = find_program(answer.text, self._budget)
            if found.code is not None:
                return Selection(found.code, "json", None, (*warnings, *answer.warnings, *found.warnings))
        return None


def find_program(text: str, budget: Budget) -> Selection:
    """The program that an answer means. An answer that is nothing but a program is taken whole."""
    whole = judge(Block(text, 0, len(text)), budget)
    if not written_programs(text) and whole.kind is Kind.COMPLETE and whole.code == text:
        warnings = (remark("reference_echoed"),) if REFERENCE.search(text) else ()
        return Selection(text, "bare", None, warnings, to_the_end=True)
    return Search(text, budget).run()


def _binds(text: str, name: str) -> bool:
    """True when a line of `text`, at its start, assigns or defines `name`."""
    return (
        re.search(rf"^(?:{re.escape(name)}\s*[=:]|(?:def|class)\s+{re.escape(name)}\b)", text, re.M)
        is not None
    )


def _is_python(block: Block) -> bool:
    return block.language in {"python", ""} and "\n@@ " not in block.code


def _ends_in_code(code: str, budget: Budget) -> bool:
    """True when unfenced text from its first line of code on stops in the middle of a program."""
    last = code.rstrip().rpartition("\n")[2]
    return stops_in_the_middle(code, budget) and (last[:1].isspace() or (NAME not in code and "(" in last))


def _objects(text: str) -> list[re.Match[str]]:
    return list(islice(re.finditer(r"(?:^[ \t]*|>)(?=\{\s*[\"'])", text, re.MULTILINE), 3))


def _value(text: str, budget: Budget) -> Any:
    """The JSON value at the start of the text, raw line breaks in its strings let pass, or the value that the
    text is as Python's `repr` writes it; else None."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text.strip())[0]
    except (ValueError, RecursionError):
        tree = budget.tree(text)
    statement = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    return _plain(statement.value) if isinstance(statement, ast.Expr) else None


def _plain(node: ast.expr) -> Any:
    """The value of a literal; of a call, as `Message(content='...')`, its arguments."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_plain(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            names = (key.value if isinstance(key, ast.Constant) else None for key in keys)
            return {name: _plain(value) for name, value in zip(names, values, strict=True)}
        case ast.Call(args=items, keywords=keywords):
            return [*map(_plain, items), {keyword.arg: _plain(keyword.value) for keyword in keywords}]
    return None


def _strings(value: Any) -> Iterable[str]:
    """The strings within a JSON value, in order, without those that hold reasoning. A list of lines is one
    string, and so are a notebook's cells of code up to the last that defines ModelNew."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif (
            isinstance(item, list)
            and item
            and all(isinstance(line, str) and line[-1:] == "\n" for line in item[:-1])
        ):
            pending.append("".join(map(str, item)))
        elif isinstance(item, list):
            pending.extend(reversed(item))
        elif isinstance(item, dict) and isinstance(item.get("cells"), list):
            pending.append(_notebook(item["cells"]))
        elif isinstance(item, dict):
            pending.extend(item[key] for key in reversed(item) if key not in _REASONING_KEYS)


def _notebook(cells: list[Any]) -> str:
    """The cells of code up to the last that defines ModelNew, without magics and commands of the shell."""
    sources = [
        cell.get("source") for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    codes = ["".join(map(str, each)) if isinstance(each, list) else str(each) for each in sources]
    last = max((number for number, code in enumerate(codes) if DEFINES.search(code)), default=-1)
    return re.sub(r"^[%!].*\n?", "", "\n\n".join(codes[: last + 1]), flags=re.MULTILINE)
