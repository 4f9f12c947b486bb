"""Rules about what a candidate must hold: ModelNew is there and is called as Model is; the inline extension
holds a kernel, and its parts fit together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelproof.backends import backend
from kernelproof.pysource import (
    Function,
    find_class,
    find_method,
    is_main_guard,
    lineage,
    parse,
    undefined_names,
)
from kernelproof.types import Severity
from kernelproof.verifier.policy.program import (
    Hit,
    Program,
    Registry,
    declarations,
    has_doubled_braces,
    line_with_open_string,
)
from kernelproof.verifier.status_rules import Cause

RULES = Registry()
PLAIN = {"torch.nn.Module", "nn.Module", "Module", "object"}
"""Bases that bring neither a forward nor parameters of `__init__`."""


@RULES.rule(Severity.ERROR, "The program does not parse as Python; no other rule is asked.", Cause.NOT_PYTHON)
def syntax_error(program: Program) -> Iterator[Hit]:
    if program.error is not None:
        line = program.error.lineno
        evidence = program.line(line) if line else ""
        yield Hit(f"Python cannot parse this: {program.error.msg}.", line=line, evidence=evidence)


@RULES.rule(
    Severity.ERROR,
    "No class is bound to ModelNew once the program is imported.",
    Cause.BREAKS_CONTRACT,
)
def missing_model_new(program: Program) -> Iterator[Hit]:
    if program.model is None:
        where = next((node for node in program.nodes if _defines_model_new(node)), None)
        if where is None:
            yield Hit("Define `class ModelNew(nn.Module)` at the top level of the file.")
        else:
            yield Hit("ModelNew must be a class at the top level of the file (or an alias of one).", where)


@RULES.rule(
    Severity.ERROR, "ModelNew has no forward, nor a base that could bring one.", Cause.BREAKS_CONTRACT
)
def missing_forward(program: Program) -> Iterator[Hit]:
    if program.model is not None and not _defines(program, program.model, "forward"):
        yield Hit("Define `forward` in ModelNew, with the parameters of Model.forward.", program.model)


@RULES.rule(
    Severity.ERROR,
    "ModelNew.__init__ cannot be called with the arguments that Model.__init__ takes.",
    Cause.BREAKS_CONTRACT,
)
def init_signature(program: Program) -> Iterator[Hit]:
    yield from _misfits(program, "__init__")


@RULES.rule(
    Severity.ERROR,
    "ModelNew.forward cannot be called with the arguments that Model.forward takes.",
    Cause.BREAKS_CONTRACT,
)
def forward_signature(program: Program) -> Iterator[Hit]:
    yield from _misfits(program, "forward")


@RULES.rule(
    Severity.WARNING,
    "A signature can be called as Model's, but names parameters differently or drops optional ones.",
)
def signature_differs(program: Program) -> Iterator[Hit]:
    for name in ("__init__", "forward"):
        wanted, function = _wanted(program, name), _method(program, name)
        if wanted is None or function is None:
            continue
        actual = _parameters(function)
        if (
            not _fault(wanted, actual)
            and not actual.variadic
            and actual.names[: len(wanted.names)] != wanted.names
        ):
            yield Hit(f"{name} should take ({', '.join(wanted.names)}), as Model does.", function)


@RULES.rule(
    Severity.NOTE, "A signature takes *args or **kwargs, so the source does not show whether it fits."
)
def variadic_signature(program: Program) -> Iterator[Hit]:
    for name in ("__init__", "forward"):
        function = _method(program, name)
        if function is not None and (function.args.vararg or function.args.kwarg):
            yield Hit(f"{name} takes any arguments; name the parameters of Model.{name}.", function)


@RULES.rule(Severity.WARNING, "Names are used that nothing in the file defines or imports.")
def missing_import(program: Program) -> Iterator[Hit]:
    undefined = undefined_names(program.tree)
    if undefined:
        names = ", ".join(list(undefined)[:20])
        yield Hit(f"Import or define: {names}.", line=next(iter(undefined.values())), evidence=names)


@RULES.rule(
    Severity.WARNING, "The file defines a part of the problem again: Model, get_inputs or get_init_inputs."
)
def redefined_problem(program: Program) -> Iterator[Hit]:
    for node in program.tree.body:
        if isinstance(node, Function | ast.ClassDef) and node.name in {
            "Model",
            "get_inputs",
            "get_init_inputs",
        }:
            yield Hit(f"Leave out {node.name}: the problem's own is used.", node)


@RULES.rule(Severity.NOTE, "The file runs test code when it is imported or started.")
def test_code(program: Program) -> Iterator[Hit]:
    for node in program.tree.body:
        called = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        name = program.qualified(called.func) if isinstance(called, ast.Call) else ""
        if is_main_guard(node) or name in {"ModelNew", "print", "get_inputs", "get_init_inputs"}:
            yield Hit("Leave test code out of the file.", node)


@dataclass(frozen=True)
class _Parameters:
    names: tuple[str, ...]
    """Positional parameters without self."""
    required: int
    variadic: bool = False
    keyword_only: tuple[str, ...] = ()
    """Keyword-only parameters without a default."""


def _parameters(function: Function) -> _Parameters:
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    required = len(names) - len(arguments.defaults)
    bound = not any(
        isinstance(node, ast.Name) and node.id == "staticmethod" for node in function.decorator_list
    )
    keyword_only = [
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    own = 1 if bound and names else 0
    return _Parameters(
        tuple(names[own:]), max(required - own, 0), arguments.vararg is not None, tuple(keyword_only)
    )


def _wanted(program: Program, name: str) -> _Parameters | None:
    """What Model takes; None when the problem does not say. Its source tells which have defaults."""
    tree = parse(program.problem.source)
    if not program.problem.signature.forward or isinstance(tree, SyntaxError):
        return None
    model = find_class(tree, "Model")
    function = find_method(tree, model, name)
    if function is not None:
        return _parameters(function)
    if model is None or any(ast.unparse(base) not in PLAIN for base in lineage(tree, model)[1]):
        return None
    return _Parameters((), 0)


def _misfits(program: Program, name: str) -> Iterator[Hit]:
    wanted, function = _wanted(program, name), _method(program, name)
    if wanted is None or program.model is None:
        return
    if function is None:
        if name == "__init__" and wanted.required and not _defines(program, program.model, "__init__"):
            yield Hit(f"Define __init__(self, {', '.join(wanted.names)}), as Model does.", program.model)
        return
    if fault := _fault(wanted, _parameters(function)):
        yield Hit(f"{name} {fault}; Model.{name} takes ({', '.join(wanted.names)}).", function)


def _fault(wanted: _Parameters, actual: _Parameters) -> str:
    """Why calls that fit `wanted` cannot be made to `actual`; empty when they can."""
    if actual.keyword_only:
        return f"requires the keyword {actual.keyword_only[0]}"
    if actual.required > len(wanted.names):
        return f"requires the extra parameter {actual.names[len(wanted.names)]}"
    if len(actual.names) < wanted.required and not actual.variadic:
        return f"does not take {wanted.names[len(actual.names)]}"
    common = [name for name in wanted.names if name in actual.names]
    if common != sorted(common, key=actual.names.index):
        return "takes the parameters in another order"
    return ""


def _method(program: Program, name: str) -> Function | None:
    """The method as ModelNew defines or inherits it within the file."""
    return find_method(program.tree, program.model, name)


def _defines(program: Program, definition: ast.ClassDef, name: str) -> bool:
    """True when the class or a base has `name`, or has a base other than nn.Module that may have it."""
    if _method(program, name) is not None:
        return True
    for node in definition.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in node.targets
        ):
            return True
    return any(program.qualified(base) not in PLAIN for base in definition.bases)


def _defines_model_new(node: ast.AST) -> bool:
    match node:
        case ast.ClassDef(name="ModelNew") | ast.Name(id="ModelNew", ctx=ast.Store()):
            return True
    return False


@RULES.rule(Severity.WARNING, "No inline extension with a kernel of its own was found in the source.")
def no_inline_kernel(program: Program) -> Iterator[Hit]:
    if backend(program.backend).first_call is not None:
        if not backend(program.backend).holds_own_code(program.source):
            yield Hit(f"Write {backend(program.backend).own_code} in the file.")
    elif not program.extensions:
        yield Hit("Compile a kernel with torch.utils.cpp_extension.load_inline.")
    elif not any(backend(program.backend).holds_own_code(text) for _, text in program.native_strings):
        wanted = backend(program.backend).own_code
        yield Hit(f"Give the extension {wanted} in its sources.", program.extensions[0].call)


@RULES.rule(Severity.WARNING, "load_inline is asked to bind functions that no cpp_sources declare.")
def missing_cpp_sources(program: Program) -> Iterator[Hit]:
    for extension in program.extensions:
        if (
            extension.kind != "load_inline"
            or not extension.complete
            or "functions" not in extension.arguments
        ):
            continue
        if extension.cpp is not None and not "".join(extension.cpp).strip():
            yield Hit("Pass cpp_sources with a prototype of each function in `functions`.", extension.call)


@RULES.rule(
    Severity.WARNING,
    "A function to bind is not declared in cpp_sources, not defined, or defined with other parameters.",
)
def unmatched_prototype(program: Program) -> Iterator[Hit]:
    for extension in program.extensions:
        if (
            extension.kind != "load_inline"
            or not extension.complete
            or not "".join(extension.cpp or ()).strip()
        ):
            continue
        for name in extension.functions or ():
            fault = _prototype_fault(name, "\n".join(extension.cpp or ()), extension.cuda)
            if fault:
                yield Hit(fault, extension.call, evidence=name)


def _prototype_fault(name: str, cpp: str, cuda: tuple[str, ...] | None) -> str:
    """What is wrong with the declarations of one function; empty when nothing is, or macros may hide it."""
    if "#define" in cpp or re.fullmatch(r"[A-Za-z_]\w*", name) is None:
        return ""
    declared = declarations(cpp, name)
    if not declared:
        return f"Declare {name} in cpp_sources: it is in `functions`."
    if cuda is None or any(declaration.is_definition for declaration in declared):
        return ""
    definitions = [d for d in declarations("\n".join(cuda), name) if d.is_definition]
    if not definitions:
        return (
            ""
            if "#define" in "\n".join(cuda)
            else f"Define {name}: cpp_sources declare it and no source defines it."
        )
    if not any(d.parameters == definition.parameters for d in declared for definition in definitions):
        declared_types, defined_types = (
            ", ".join(declared[0].parameters),
            ", ".join(definitions[0].parameters),
        )
        return f"{name} is declared with ({declared_types}) and defined with ({defined_types})."
    return ""


@RULES.rule(
    Severity.NOTE, "A C string in native source is broken by a newline: an escape that Python has replaced."
)
def broken_c_string(program: Program) -> Iterator[Hit]:
    for node, text in program.native_strings:
        line = line_with_open_string(text)
        if line is not None:
            yield Hit(r"Use a raw string (r\"\"\") for native source, or write \\n.", node, line)


@RULES.rule(
    Severity.NOTE, "Native source in a plain string has all its braces doubled, as only f-strings need."
)
def doubled_braces(program: Program) -> Iterator[Hit]:
    for node, text in program.native_strings:
        if has_doubled_braces(text):
            yield Hit("Write single braces in a plain string.", node)
