"""Which names C++ headers declare in which namespace, read from preprocessed text without parsing all of C++.

What is taken for declared is more than what is: every name of a declaration that stands outside of
parentheses and bodies. So a source can find a name that is not among them as a member only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

NAME = re.compile(r"[^\W\d]\w*")

_QUOTED = (
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'"
)
_OUTSIDE = re.compile(rf"{_QUOTED}|[{{}};]", re.DOTALL)
_INSIDE = re.compile(rf"{_QUOTED}|[{{}}]", re.DOTALL)
_NAMESPACE = re.compile(r"\b(?P<inline>inline\s+)?namespace\b(?P<rest>[^;={}]*)\Z")
_ATTRIBUTES = re.compile(r"__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]", re.DOTALL)
_LINKAGE = re.compile(r'\bextern\s*"[^"]*"\s*\Z')
_ENUM = re.compile(r"\benum\b")
_INNERMOST = re.compile(r"\([^()]*\)")
_DECLARATOR = re.compile(r"\(\s*(?:\w+\s*::\s*)*[*&]+\s*(?:const\s+)?([^\W\d]\w*)|\(\s*([^\W\d]\w*)\s*\)")
"""`(*name)` and `(name)`: declared within parentheses."""
_PARAMETERS = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)*>")
_STRING = re.compile(_QUOTED, re.DOTALL)
_FRIEND = re.compile(r"\bfriend\b([^;{]*)")
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\s+(\w+)\b(?!\s*(?:[{:]|final\b))")
"""Not where it is defined: what is defined inside of a type belongs to that."""
_SYMBOLS = ("c10::aten", "c10::attr", "c10::onnx", "c10::prim")
_OPENED = re.compile(r"\busing\s+(?:namespace|enum)\b")
_DEFINE = re.compile(r"^#define (\w+).*\n|^#undef .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Declarations:
    """What the headers of one source bring."""

    mentioned: frozenset[str]
    """All names in them, of whatever; not those of macros."""
    macros: frozenset[str]
    names: dict[str, frozenset[str]]
    """Namespace (`at::cuda`, empty for the global one) to names; inline and unnamed ones are those around.
    Empty where the braces are not balanced as they are understood here."""
    loose: frozenset[str] = field(default=frozenset())
    """Names whose namespace was not looked for: friends, and types named first inside of something."""
    opened: bool = False
    """Whether a namespace is opened for all, by a using-directive in the global one."""

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """The names of all namespaces; all that are mentioned where these are not known."""
        return self.loose.union(*self.names.values()) if self.names else self.mentioned

    @cached_property
    def meaningful(self) -> frozenset[str]:
        """`everywhere` without torch's interned symbols: there is a `c10::attr::n` for nearly every word."""
        rest = (found for space, found in self.names.items() if space not in _SYMBOLS)
        return self.loose.union(*rest) if self.names else self.mentioned

    @cached_property
    def outside(self) -> frozenset[str]:
        """The names of the global namespace; all that are mentioned where these are not known."""
        return self.loose | self.names.get("", frozenset()) if self.names else self.mentioned


def read_declarations(text: str) -> Declarations:
    """The declarations in headers, as `g++ -E -dN` writes them."""
    macros = frozenset(match[1] for match in _DEFINE.finditer(text) if match[1])
    text = _DEFINE.sub("", text)
    mentioned = frozenset(NAME.findall(text))
    names: defaultdict[str, set[str]] = defaultdict(set)
    opened = False
    try:
        for space, statement in _statements(text):
            names[space].update(_declared(statement))
            opened = opened or (not space and bool(_OPENED.search(statement)))
    except ValueError:
        return Declarations(mentioned, macros, {})
    loose = set(_TYPE.findall(text)).union(*map(_declared, _FRIEND.findall(text)))
    spaces = {space: frozenset(found) for space, found in names.items()}
    return Declarations(mentioned, macros, spaces, frozenset(loose), opened)


def _statements(text: str) -> Iterator[tuple[str, str]]:
    """Each namespace with each declaration in it, bodies left out, those of enumerations kept.

    Raises ValueError where braces are not balanced as they are understood here.
    """
    stack, head = [""], ""
    start = position = 0
    while token := _OUTSIDE.search(text, position):
        position = token.end()
        mark = token[0]
        if mark not in "{};":
            continue
        head += text[start : token.start()]
        start = position
        if mark == "{" and (inner := _entered(head, stack[-1])) is not None:
            yield stack[-1], head
            stack.append(inner)
        elif mark == "{":
            start = position = _end_of_body(text, position)
            if _ENUM.search(head):
                head += text[token.end() : position]
            if _in_parentheses(head):
                continue
            yield stack[-1], head
        else:
            yield stack[-1], head
            if mark == "}":
                stack.pop()
            if not stack:
                raise ValueError("a brace too many")
        head = ""
    if len(stack) != 1:
        raise ValueError("a brace too few")


def _entered(head: str, around: str) -> str | None:
    """The namespace that begins after `head`; None where something else begins."""
    if _LINKAGE.search(head):
        return around
    found = _NAMESPACE.search(_ATTRIBUTES.sub(" ", head))
    if found is None:
        return None
    path = [part for part in NAME.findall(found["rest"]) if part != "inline"]
    if found["inline"] or not path:
        return around
    return "::".join([around, *path] if around else path)


def _end_of_body(text: str, position: int) -> int:
    """Behind the brace that closes the one before `position`. Raises ValueError without one."""
    depth = 1
    for token in _INSIDE.finditer(text, position):
        mark = token[0]
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                return token.end()
    raise ValueError("a brace too few")


def _in_parentheses(head: str) -> bool:
    """Whether a brace after `head` belongs to an argument, as in `void f(X x = {}, int n)`."""
    bare = _STRING.sub("", head)
    return bare.count("(") > bare.count(")")


def _declared(head: str) -> list[str]:
    """The names in a declaration, those of parameters left out."""
    found = [name for pair in _DECLARATOR.findall(head) for name in pair if name]
    while (shorter := _INNERMOST.sub(" ", head)) != head:
        head = shorter
    return found + NAME.findall(_PARAMETERS.sub(" ", head))
