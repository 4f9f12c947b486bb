"""The numeric parameters of a source: declared in comments, else found. Text in, text out; nothing is run.

    // tune: TILE = 16 | 32 | 64
    // tune where: TILE * TILE * 4 <= 49152
    constexpr int TILE = 32;

A declaration names a parameter and its values. Every place of the source that gives the name a whole number
is changed together: `constexpr int TILE = 32`, `#define TILE 32`, `TILE = 32`, `kernel[grid](x, TILE=32)`,
`-DTILE=32`.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from kernelproof.errors import UsageError

LONGEST_CONDITION = 200
"""Characters of a condition. So its numbers stay small as well."""
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True)
class Limit:
    text: str
    _tree: ast.Compare

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether these values meet it. A division by zero does not."""
        try:
            sides = [_value(side, values) for side in (self._tree.left, *self._tree.comparators)]
        except ZeroDivisionError:
            return False
        pairs = zip(self._tree.ops, sides, sides[1:], strict=False)
        return all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)


def read_limit(text: str, names: Collection[str], line: int) -> Limit:
    """The condition that a comment states. Raises UsageError that says what may stand there."""

    def refuse(why: str) -> UsageError:
        return UsageError(f"line {line}: the condition {text!r:.80} {why}")

    if len(text) > LONGEST_CONDITION:
        raise refuse(f"is longer than {LONGEST_CONDITION} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refuse("cannot be read; write for instance: TILE * TILE * 4 <= 49152") from None
    if not isinstance(tree, ast.Compare):
        raise refuse("compares nothing; write for instance: TILE * TILE * 4 <= 49152")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names:
            raise refuse(f"names {node.id}, which is no parameter; there are {', '.join(names)}")
        if not _is_allowed(node):
            raise refuse("may hold whole numbers, parameters, + - * // % and comparisons, and nothing else")
    return Limit(text.strip(), tree)


def _is_allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    plain = (ast.Compare, ast.BinOp, ast.Name, ast.Load)
    return isinstance(node, (*plain, *_OPERATORS, *_COMPARISONS))


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.Name):
        return values[node.id]
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return node.value


LONGEST = 200_000
MOST_PARAMETERS = 16
MOST_CONDITIONS = 64
MOST_VALUES = 64
MOST_NUMBER = 2**31 - 1
MOST_COUNTED = 100_000
FOUND_STEPS = (-2, -1, 0, 1, 2)
"""A constant that was found is halved and doubled so many times."""
FOUND_MOST = 4096

_DECLARED = re.compile(r"(?://|/\*|#)[ \t]*tune[ \t]*:[ \t]*(?P<rest>[^\n]*)")
_WHERE = re.compile(r"(?://|/\*|#)[ \t]*tune[ \t]+where[ \t]*:[ \t]*(?P<rest>[^\n]*)")
_VALUES = re.compile(
    r"(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*(?P<values>\d{1,10}(?:[ \t]*[|,][ \t]*\d{1,10})*)[ \t]*", re.A
)
_NUMBER = r"(?P<number>\d{1,10})(?![\w.])(?![ \t]*(?:[*+%<>&|^?-]|/(?![/*])))"
"""A number that stands alone, not one of a term."""
_GIVEN = r"(?:(?<![\w.])|(?<=-D))NAME(?:[ \t]*:[ \t]*[\w.]+)?[ \t]*=(?!=)[ \t]*" + _NUMBER
_DEFINED = r"#[ \t]*define[ \t]+NAME[ \t]+" + _NUMBER
_SUFFIX = r"(?:[uUlL]{1,3}\b)?"
_NAME = r"(?P<name>[A-Za-z_]\w*)"
_CONSTANT = re.compile(rf"\bconst(?:expr)?[ \t]+(?:\w[\w:]*[ \t]+){{1,4}}{_NAME}[ \t]*=[ \t]*{_NUMBER}", re.A)
_DEFINE = re.compile(_DEFINED.replace("NAME", _NAME), re.A)
_FIXED = re.compile(r"warp_?size", re.IGNORECASE)
"""Constants of the hardware."""
_COMMENT = re.compile(r"//|(?:^|\s)#(?![ \t]*define\b)")

Values = tuple[int, ...]
"""A value for each parameter, in their order."""


@dataclass(frozen=True)
class Parameter:
    name: str
    value: int
    """What the source says."""
    values: tuple[int, ...]
    """What may stand there, ascending; what the source says among them."""
    spans: tuple[tuple[int, int], ...]
    """Where it stands: first character and one past the last."""
    line: int


@dataclass(frozen=True)
class Template:
    source: str
    parameters: tuple[Parameter, ...]
    limits: tuple[Limit, ...]
    declared: bool
    """False: the source declares nothing, and the parameters were found."""

    @property
    def original(self) -> Values:
        return tuple(parameter.value for parameter in self.parameters)

    @property
    def size(self) -> int:
        """The number of combinations, those that conditions exclude included."""
        return math.prod(len(parameter.values) for parameter in self.parameters)

    @cached_property
    def allowed(self) -> int | None:
        """The number of combinations that the conditions allow; None where they are too many to count."""
        return sum(1 for _ in self.combinations()) if self.size <= MOST_COUNTED else None

    def named(self, values: Values) -> dict[str, int]:
        return {parameter.name: value for parameter, value in zip(self.parameters, values, strict=True)}

    def allows(self, values: Values) -> bool:
        named = self.named(values)
        return all(limit.holds(named) for limit in self.limits)

    def combinations(self) -> Iterator[Values]:
        return filter(self.allows, itertools.product(*(p.values for p in self.parameters)))

    def filled(self, values: Values) -> str:
        places = {
            span: str(value)
            for parameter, value in zip(self.parameters, values, strict=True)
            for span in parameter.spans
        }
        text = self.source
        for (start, end), number in sorted(places.items(), reverse=True):
            text = text[:start] + number + text[end:]
        return text


def read_template(source: str) -> Template:
    """The parameters that a source declares, else those that are found in it.

    Raises UsageError where there are none, and for a declaration that makes no sense.
    """
    if len(source) > LONGEST:
        raise UsageError(f"the source is too long to be tuned: {len(source)} of at most {LONGEST} characters")
    text = _Text(source)
    declared = text.declared()
    parameters = declared or text.undeclared()
    if not parameters:
        raise UsageError(
            "no parameter was found: the source declares none, and has no constexpr int, const int or "
            "#define that is a power of two. Declare one beside its definition: // tune: TILE = 16 | 32 | 64 "
            "(in Python: # tune: BLOCK = 128, 256, 512)"
        )
    _refuse_many(len(parameters))
    names = [parameter.name for parameter in parameters]
    limits = tuple(read_limit(rest, names, line) for line, rest in text.conditions())
    template = Template(source, tuple(parameters), limits, bool(declared))
    named = template.named(template.original)
    if broken := [limit.text for limit in limits if not limit.holds(named)]:
        raise UsageError(
            f"the source's own values do not meet its condition {broken[0]!r}; change one of them"
        )
    return template


def _refuse_many(count: int) -> None:
    if count > MOST_PARAMETERS:
        raise UsageError(
            f"there are more than the {MOST_PARAMETERS} parameters that can be tuned; "
            "declare those that matter: // tune: TILE = 16 | 32 | 64"
        )


class _Text:
    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def code(self) -> str:
        """The source with its declarations blanked: every character stays where it is."""
        text = _DECLARED.sub(lambda found: " " * len(found[0]), self.source)
        return _WHERE.sub(lambda found: " " * len(found[0]), text)

    def line(self, position: int) -> int:
        return self.source.count("\n", 0, position) + 1

    def conditions(self) -> list[tuple[int, str]]:
        found = list(_WHERE.finditer(self.source))
        if len(found) > MOST_CONDITIONS:
            raise UsageError(f"there are too many conditions: {len(found)}, at most {MOST_CONDITIONS}")
        return [(self.line(one.start()), _content(one)) for one in found]

    def declared(self) -> list[Parameter]:
        parameters: dict[str, Parameter] = {}
        for comment in _DECLARED.finditer(self.source):
            line, said = self.line(comment.start()), _content(comment)
            match = _VALUES.fullmatch(said)
            if match is None:
                raise UsageError(
                    f"line {line}: the declaration {said!r:.80} cannot be read; write for instance: "
                    "tune: TILE = 16 | 32 | 64"
                )
            name = match["name"]
            if name in parameters:
                raise UsageError(f"line {line}: {name} is declared twice")
            values = {int(number) for number in re.split(r"[|,]", match["values"])}
            parameters[name] = self._parameter(name, values, line)
            _refuse_many(len(parameters))
        return sorted(parameters.values(), key=lambda one: one.spans)

    def _parameter(self, name: str, values: set[int], line: int) -> Parameter:
        """Raises UsageError where the name has no value, or several."""
        places = sorted(
            found.span("number")
            for pattern in (_GIVEN, _DEFINED)
            for found in re.finditer(pattern.replace("NAME", name), self._with_plain_suffixes, re.A)
            if not self._in_comment(found.start())
        )
        seen = {int(self.source[start:end]): self.line(start) for start, end in reversed(places)}
        if not seen:
            raise UsageError(
                f"line {line}: {name} is declared, and nothing gives it a whole number; write for instance: "
                f"constexpr int {name} = {min(values)};"
            )
        if len(seen) > 1:
            said = ", ".join(f"{value} on line {at}" for value, at in sorted(seen.items()))
            raise UsageError(f"line {line}: {name} has several values ({said}); give them different names")
        (value,) = seen
        allowed = sorted(values | {value})
        if len(allowed) > MOST_VALUES or allowed[-1] > MOST_NUMBER:
            raise UsageError(f"line {line}: {name} may have {MOST_VALUES} values up to {MOST_NUMBER}")
        return Parameter(name, value, tuple(allowed), tuple(places), seen[value])

    def undeclared(self) -> list[Parameter]:
        """`constexpr int`, `const int` and `#define` of a power of two, each name with one value only."""
        places: dict[str, list[tuple[int, int]]] = {}
        for pattern in (_CONSTANT, _DEFINE):
            for found in pattern.finditer(self._with_plain_suffixes):
                if not self._in_comment(found.start()) and not _FIXED.search(found["name"]):
                    places.setdefault(found["name"], []).append(found.span("number"))
        parameters = []
        for name, spans in places.items():
            numbers = {int(self.source[start:end]) for start, end in spans}
            value = numbers.pop()
            if not numbers and 2 <= value <= FOUND_MOST and value.bit_count() == 1:
                near = (value << step if step >= 0 else value >> -step for step in FOUND_STEPS)
                values = tuple(sorted({one for one in near if 1 <= one <= FOUND_MOST}))
                parameters.append(
                    Parameter(name, value, values, tuple(sorted(spans)), self.line(spans[0][0]))
                )
        return sorted(parameters, key=lambda one: one.spans)

    @cached_property
    def _with_plain_suffixes(self) -> str:
        """The code with blanks for the suffixes of C++ numbers: `32u` is found as 32."""
        return re.sub(
            rf"(?<![\w.])(\d+)({_SUFFIX})",
            lambda found: found[1] + " " * len(found[2]),
            self.code,
            flags=re.A,
        )

    def _in_comment(self, position: int) -> bool:
        """Whether a comment begins before it on its line."""
        start = self.code.rfind("\n", 0, position) + 1
        return _COMMENT.search(self.code[start:position]) is not None


def _content(comment: re.Match[str]) -> str:
    return comment["rest"].split("*/")[0].strip()
