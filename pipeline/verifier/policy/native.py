"""Looking at C++ and CUDA text. Regular expressions suffice here: findings about it only inform."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
