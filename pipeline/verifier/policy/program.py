"""What a rule is, and what it looks at: a parsed candidate with its qualified names, ModelNew and extensions.

A `Rule` is a small function over a `Program`, with name, severity and a sentence of documentation.
`Strings` has the values of string expressions, as far as the source alone shows them. C++ and CUDA text is
looked at with regular expressions (`declarations`): findings about it only inform.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kernelproof.pysource import Function, find_class, parse
from kernelproof.types import Finding, Problem, Severity, Status
from kernelproof.verifier.status_rules import Cause

MAX_CHARACTERS = 2_000_000
_MAX_DEPTH = 40
_SAME_TEXT = {"strip", "lstrip", "rstrip"}

MAX_HITS = 5
"""Most findings of one rule: the sixth says nothing new."""
_MAX_EVIDENCE = 200


class Strings:
    """Resolves constants, simple assignments, `+`, `+=`, f-strings (constant parts), strip and dedent.

    A name stands for all that is ever assigned to it, joined, as no branch is followed.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._values: dict[str, list[ast.expr]] = {}
        self._known: dict[str, str | None] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        if isinstance(target, ast.Name):
                            self._values.setdefault(target.id, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._values.setdefault(name, []).append(value)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                    self._values.setdefault(name, []).append(value)

    def value(self, node: ast.expr, depth: int = 0) -> str | None:
        """The text, or None when the source does not show it. Unknown parts of an f-string are a space."""
        if depth > _MAX_DEPTH:
            return None
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=parts):
                return "".join(self._part(part) for part in parts)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _join([self.value(left, depth + 1), self.value(right, depth + 1)])
            case ast.Name(id=name):
                return self._named(name, depth)
            case ast.Call(func=ast.Attribute(attr="dedent") | ast.Name(id="dedent"), args=[inner]):
                indented = self.value(inner, depth + 1)
                return None if indented is None else textwrap.dedent(indented)
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[]) if method in _SAME_TEXT:
                return self.value(inner, depth + 1)
        return None

    def values(self, node: ast.expr | None) -> list[str] | None:
        """The texts of a string or of a list of strings; None when any of them is unknown, [] for None."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return []
        for item in self._items(node):
            node = item
        if isinstance(node, ast.List | ast.Tuple):
            texts = [self.value(element) for element in node.elts]
            return (
                None if any(text is None for text in texts) else [text for text in texts if text is not None]
            )
        text = self.value(node)
        return None if text is None else [text]

    def names(self, node: ast.expr | None) -> list[str] | None:
        """The same, where a dictionary stands for its keys: the `functions` of an extension."""
        if node is not None:
            for item in self._items(node):
                node = item
        if isinstance(node, ast.Dict):
            keys = [self.value(key) if key is not None else None for key in node.keys]
            return None if any(key is None for key in keys) else [key for key in keys if key is not None]
        return self.values(node)

    def _items(self, node: ast.expr) -> Iterator[ast.expr]:
        """The list or dictionary that a name stands for, when it is assigned once."""
        if isinstance(node, ast.Name):
            values = self._values.get(node.id, [])
            if len(values) == 1 and isinstance(values[0], ast.List | ast.Tuple | ast.Dict):
                yield values[0]

    def _named(self, name: str, depth: int) -> str | None:
        if name not in self._known:
            self._known[name] = None  # a name that stands for itself is unknown
            values = self._values.get(name)
            if values:
                self._known[name] = _join([self.value(value, depth + 1) for value in values])
        return self._known[name]

    @staticmethod
    def _part(part: ast.expr) -> str:
        return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else " "


def _join(parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or sum(map(len, known)) > MAX_CHARACTERS:
        return None
    return "".join(known)


_COMMENT_OR_LITERAL = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.){1,8}'", re.DOTALL
)
_NATIVE = re.compile(r"[;{]\s*(?:$|\})|#include|__global__", re.MULTILINE)


def without_comments(text: str) -> str:
    """The text with each comment replaced by a space; literals that hold comment signs are kept."""
    return _COMMENT_OR_LITERAL.sub(lambda match: match[0] if match[0][0] in "\"'" else " ", text)


def looks_native(text: str) -> bool:
    """True for text that looks like C++ or CUDA."""
    return _NATIVE.search(text) is not None


@dataclass(frozen=True)
class Declaration:
    """One declaration or definition of a function at any place of the text."""

    parameters: tuple[str, ...]
    """Types, in a normal form: no names, no defaults, `at::` for `torch::`."""
    is_definition: bool


def declarations(text: str, name: str) -> list[Declaration]:
    """The declarations and definitions of `name`: the text after the parenthesis tells a call from them."""
    found: list[Declaration] = []
    for match in re.finditer(
        rf"[\w>&*]\s+[&*]?{re.escape(name)}\s*\(|^{re.escape(name)}\s*\(", text, re.MULTILINE
    ):
        if re.search(
            r"\b(?:return|new|else)\s+[&*]?$", text[max(0, match.start() - 8) : match.end() - len(name) - 1]
        ):
            continue
        end = _closing(text, match.end())
        after = text[end + 1 : end + 40].lstrip()
        if end > 0 and after[:1] in {";", "{"}:
            found.append(Declaration(_types(text[match.end() : end]), after[0] == "{"))
    return found


def _closing(text: str, start: int) -> int:
    """Index of the parenthesis that closes the parenthesis before `start`; -1 without one in 10,000
    characters."""
    depth = 1
    for index in range(start, min(len(text), start + 10_000)):
        if text[index] == "(":
            depth += 1
        elif text[index] == ")":
            depth -= 1
            if depth == 0:
                return index
    return -1


def _types(parameters: str) -> tuple[str, ...]:
    parts = [""]
    depth = 0
    for character in parameters:
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(_type(part) for part in parts if part.strip() not in {"", "void"})


def _type(parameter: str) -> str:
    text = parameter.partition("=")[0].replace("torch::", "at::").replace("std::", "")
    words = re.findall(r"[\w:]+|[^\s\w]", text)
    if len(words) > 1 and words[-2] != "const" and words[-1].isidentifier() and words[-1] not in _TYPE_WORDS:
        words.pop()  # the parameter's name
    if not any(sign in words for sign in "&*"):
        words = [word for word in words if word != "const"]
    return " ".join(words)


_TYPE_WORDS = frozenset(
    {"int", "long", "float", "double", "bool", "char", "short", "const", "unsigned", "signed"}
)


def line_with_open_string(text: str) -> str | None:
    """The first line on which a C string literal starts and does not end (raw strings left out), or None."""
    if 'R"' in text:
        return None
    for line in text.split("\n"):
        bare = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.){1,8}'", "", line)
        if '"' in bare and not bare.rstrip().endswith("\\"):
            return line.strip()
    return None


def has_doubled_braces(text: str) -> bool:
    """True when every brace of the text is doubled, as an f-string or `format` template has them."""
    return "{{" in text and "{" not in text.replace("{{", "") and "}" not in text.replace("}}", "")


_LOADERS = {"load_inline": ("name", "cpp_sources", "cuda_sources", "functions"), "load": ("name", "sources")}


@dataclass(frozen=True)
class Extension:
    """One call that compiles an extension."""

    call: ast.Call
    kind: str
    """`load_inline`, `load` or `_compile_kernel`."""
    arguments: dict[str, ast.expr]
    complete: bool
    """False when the call unpacks arguments that the source does not show."""
    cpp: tuple[str, ...] | None
    """C++ sources without comments; None where the source does not show them."""
    cuda: tuple[str, ...] | None
    functions: tuple[str, ...] | None

    @property
    def native(self) -> str:
        """All native source of the extension that is known."""
        return "\n".join((*(self.cpp or ()), *(self.cuda or ())))


class Program:
    """One candidate beside its problem. `error` says why it does not parse; the tree is empty then."""

    def __init__(self, source: str, problem: Problem, backend: str) -> None:
        parsed = parse(source)
        self.error = parsed if isinstance(parsed, SyntaxError) else None
        self.tree = parsed if isinstance(parsed, ast.Module) else ast.Module([], [])
        self.source, self.problem = source, problem
        self.backend = backend
        self.strings = Strings(self.tree)
        self._lines = source.split("\n")

    def text_of(self, node: ast.AST) -> str:
        """The first line of a node's source text."""
        return self.line(getattr(node, "lineno", 0))

    def line(self, number: int) -> str:
        """The text of a 1-based line without its indent; empty where there is no such line."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node, once."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def model(self) -> ast.ClassDef | None:
        """The class that ModelNew is bound to on import."""
        return find_class(self.tree, "ModelNew")

    @cached_property
    def methods(self) -> dict[str, Function]:
        """ModelNew's own methods."""
        body = self.model.body if self.model else []
        return {node.name: node for node in body if isinstance(node, Function)}

    @cached_property
    def _imports(self) -> dict[str, str]:
        """Local name to the qualified name that an import, or an alias of one (`t = torch`), gives it."""
        names: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
                source = _dotted(node.value)
                head, _, rest = source.partition(".")
                for target in node.targets:
                    if isinstance(target, ast.Name) and head in names and target.id not in names:
                        names[target.id] = names[head] + (f".{rest}" if rest else "")
        return names

    def qualified(self, node: ast.AST) -> str:
        """`torch.nn.functional.relu` for `F.relu`; as written where nothing imports it; else empty."""
        name = _dotted(node)
        head, dot, rest = name.partition(".")
        return self._imports.get(head, head) + dot + rest if name else ""

    def is_module(self, node: ast.AST) -> bool:
        """True when the expression starts at a name that an import binds."""
        return _dotted(node).partition(".")[0] in self._imports

    @cached_property
    def module_level_names(self) -> frozenset[str]:
        """Names that a top-level assignment binds: extensions, constants; not a call's tensors."""
        targets = (t for node in self.tree.body if isinstance(node, ast.Assign) for t in node.targets)
        return frozenset(target.id for target in targets if isinstance(target, ast.Name))

    @cached_property
    def extensions(self) -> tuple[Extension, ...]:
        """The calls that compile native source."""
        return tuple(self._extensions())

    def _extensions(self) -> Iterator[Extension]:
        for call in self.calls:
            name = self.qualified(call.func)
            kind = name.rpartition(".")[2]
            if name in {"load_inline", "torch.cuda._compile_kernel"} or name.startswith(
                "torch.utils.cpp_extension."
            ):
                arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
                arguments |= dict(zip(_LOADERS.get(kind, ("kernel_source",)), call.args, strict=False))
                complete = not (
                    any(keyword.arg is None for keyword in call.keywords)
                    or any(isinstance(argument, ast.Starred) for argument in call.args)
                )
                cuda = arguments.get("kernel_source" if kind == "_compile_kernel" else "cuda_sources")
                functions = self.strings.names(arguments.get("functions"))
                yield Extension(
                    call,
                    kind,
                    arguments,
                    complete,
                    self._sources(arguments.get("cpp_sources")),
                    self._sources(cuda),
                    None if functions is None else tuple(functions),
                )

    def _sources(self, node: ast.expr | None) -> tuple[str, ...] | None:
        texts = self.strings.values(node)
        return None if texts is None else tuple(without_comments(text) for text in texts)

    @cached_property
    def native_strings(self) -> tuple[tuple[ast.AST, str], ...]:
        """String constants that hold native source, comments removed; docstrings are not among them."""
        docstrings = {
            id(node.value)
            for node in self.nodes
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr)
        }
        inside = {id(part) for node in self.nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        skipped = docstrings | inside
        found: list[tuple[ast.AST, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped:
                text = self.strings.value(node)
                if text is not None and looks_native(text):
                    found.append((node, without_comments(text)))
        return tuple(found)


def _dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of attributes that starts at a name, else empty."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((node.id, *reversed(parts)))


@dataclass(frozen=True)
class Hit:
    """One place where a rule matched. `evidence` defaults to the source text of `node`."""

    message: str
    node: ast.AST | None = None
    evidence: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Rule:
    """One rule. `cause` is why the attempt ends, for severity error."""

    name: str
    severity: Severity
    description: str
    check: Callable[[Program], Iterator[Hit]]
    cause: Cause | None = None

    @property
    def status(self) -> Status | None:
        """The status of the attempt, for severity error."""
        return self.cause.status if self.cause else None

    def findings(self, program: Program) -> Iterator[Finding]:
        """What the rule finds in the program: one finding a line, five at most."""
        lines: set[int | None] = set()
        for hit in self.check(program):
            line = hit.line or getattr(hit.node, "lineno", None)
            if line in lines or len(lines) == MAX_HITS:
                continue
            lines.add(line)
            evidence = hit.evidence or (program.text_of(hit.node) if hit.node is not None else "")
            yield Finding(
                rule=self.name,
                severity=self.severity,
                message=hit.message,
                line=line,
                evidence=evidence[:_MAX_EVIDENCE],
                status=self.status,
            )


RuleFunction = Callable[[Program], Iterator[Hit]]


class Registry(list[Rule]):
    """Rules in the order in which they are asked."""

    def rule(
        self, severity: Severity, description: str, cause: Cause | None = None
    ) -> Callable[[RuleFunction], RuleFunction]:
        """Registers the decorated function as a rule of its own name."""

        def register(check: RuleFunction) -> RuleFunction:
            self.append(Rule(check.__name__, severity, description, check, cause))
            return check

        return register
