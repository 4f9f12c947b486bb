"""A parsed candidate and what the rules ask about it: qualified names, ModelNew, extensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kernelproof.pysource import Function, find_class, parse
from kernelproof.types import Problem
from kernelproof.verifier.policy import native
from kernelproof.verifier.policy.strings import Strings

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
        return None if texts is None else tuple(native.without_comments(text) for text in texts)

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
                if text is not None and native.looks_native(text):
                    found.append((node, native.without_comments(text)))
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
