"""Rules about the inline extension: there is one, it holds a kernel, and its parts fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelproof.backends import backend
from kernelproof.types import Severity
from kernelproof.verifier.policy.program import (
    Hit,
    Program,
    Registry,
    declarations,
    has_doubled_braces,
    line_with_open_string,
)

RULES = Registry()


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
