"""Which errors of a compilation with slim headers are surely the candidate's own.

Such an error would come with all of torch's headers, too, and g++ would say the same: the build need not be
repeated with them to know how it ends. What is in doubt is not own.

The slim headers are a part of the full ones, so a source that the preprocessor makes the same of with both
can go wrong with the slim ones alone only where they lack a declaration. Therefore

- a name that was not found, and that the full headers do not declare where it was looked for, is not found
  with them either: only the source itself could declare it, and the source is the same;
- a syntax error stays one if the slim headers bring every name of the source that the full ones bring, and no
  name close to it could be a template in one and not in the other.

The first error in a source cannot come of another one, so it alone decides how the full compilation would
end. The others must be own as well, so that the log misleads nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from pipeline.build.complaints import Complaint
from pipeline.build.declarations import Declarations
from pipeline.build.preprocessed import Preprocessed
from pipeline.build.spelling import distance, nearest

MOST_NAMES = 20
"""With more names that were not found the errors count as doubtful: looking for hints takes time."""

_NAME = r"'(?P<name>[^\W\d]\w*)'"
_HINT = r"(?:; did you mean '(?P<hint>[^']+)'\?)?"
_NOT_FOUND = re.compile(
    rf"{_NAME} (?:was not declared in this scope|has not been declared|does not name a type"
    rf"|is not a member of '(?P<inside>[^']+)'|in namespace '(?P<around>[^']+)' does not name a type){_HINT}"
)
_NO_MEMBER = re.compile(rf"'[^']+' has no member named {_NAME}{_HINT}")
_SYNTAX = re.compile(
    r"expected .*|stray '[^']*' in program|missing terminating .* character|unterminated .*"
    r"|'else' without a previous 'if'|a function-definition is not allowed here before '{' token"
)
_FOLLOWING = re.compile(r"template argument \d+ is invalid|variable or field '[^']+' declared void")
"""What a name that was not found brings about in its line."""
_PERHAPS_TEMPLATE = re.compile(r"(?<![\w.>:])(?:(?!std\b)\w+\s*::\s*)*(?P<name>(?!std\b)[^\W\d]\w*)\s*<")
"""Members are left out, whose class is the same, and names of the standard library."""


def all_own(found: Sequence[Complaint], lines: Sequence[str], slim: Preprocessed, full: Preprocessed) -> bool:
    """Whether g++ would find all that is wrong in a source of these `lines` with the full headers, too."""
    if not found or slim.own != full.own:
        return False
    missed: list[re.Match[str]] = []
    missed_at: set[int] = set()
    members: list[str] = []
    syntax: list[int] = []
    for complaint in found:
        message = complaint.message
        if name := _NOT_FOUND.fullmatch(message):
            missed.append(name)
            missed_at.add(complaint.line)
        elif name := _NO_MEMBER.fullmatch(message):
            members.append(name["name"])
        elif _SYNTAX.fullmatch(message):
            syntax.append(complaint.line)
        elif not _FOLLOWING.fullmatch(message) or complaint.line not in missed_at:
            return False
    if len({name["name"] for name in missed}) > MOST_NAMES:
        return False
    if not all(_is_only_a_member(name, full) for name in members):
        return False
    if syntax and not _parses_alike(lines[max(0, syntax[0] - 2) : syntax[0]], slim, full):
        return False
    return all(_is_nowhere(name, slim, full) for name in missed)


def _is_nowhere(missed: re.Match[str], slim: Preprocessed, full: Preprocessed) -> bool:
    """Whether the full headers have neither what was missed nor a name that g++ would have hinted at."""
    name, space = missed["name"], missed["inside"] or missed["around"]
    declared = full.declared
    if name in declared.mentioned and (
        not declared.names
        or (space is not None and space not in declared.names)
        or name in _reachable(space, full.own, declared)
    ):
        return False
    return not _better_hint(missed, slim, full)


def _reachable(space: str | None, own: tuple[str, ...], declared: Declarations) -> frozenset[str]:
    """The names that a source could find, those that g++ would name as alternatives, and more."""
    if not {"class", "struct", "union"}.isdisjoint(own):
        return declared.mentioned  # members of a base
    if space is not None or declared.opened or not {"namespace", "enum"}.isdisjoint(own):
        return declared.everywhere
    return declared.meaningful


def _better_hint(missed: re.Match[str], slim: Preprocessed, full: Preprocessed) -> bool:
    """Whether g++, given more names to choose from, might have said "did you mean" another one."""
    name, hint = missed["name"], missed["hint"]
    space = missed["inside"] or missed["around"] or ""

    def hints(declared: Declarations) -> frozenset[str]:
        found = declared.names.get(space, frozenset()) if declared.names else declared.mentioned
        return found if space else found | declared.macros

    more = hints(full.declared)
    most = None
    if hint is not None:
        # Of names that are as close as each other g++ takes the one of the inner scope.
        most = distance(name, hint) - (0 if hint in more else 1)
    return nearest(name, more - {hint}, most) is not None and (
        nearest(name, more - hints(slim.declared), most) is not None
    )


def _is_only_a_member(name: str, full: Preprocessed) -> bool:
    """Whether nothing declares `name`: it is in no header, and in the source only after `.` and `->`."""
    own = full.own
    return name not in full.declared.mentioned and all(
        own[i - 1 : i] == (".",) or own[i - 2 : i] == ("-", ">")
        for i, token in enumerate(own)
        if token == name
    )


def _parses_alike(near: Sequence[str], slim: Preprocessed, full: Preprocessed) -> bool:
    """Whether a source, its first syntax error at the end of `near`, is parsed with both headers alike."""
    own, less, more = full.own, slim.declared, full.declared
    opened = more.opened or "namespace" in own
    for i, name in enumerate(own):
        if own[i - 1 : i] == (".",) or own[i - 2 : i] == ("-", ">"):
            continue  # a member, of the same class
        if opened or own[i - 1 : i] == (":",):
            lacking = name in more.everywhere and name not in less.everywhere
        else:
            lacking = name in more.outside and name not in less.outside
        if lacking:
            return False
    supplied = more.everywhere
    reopened = {
        name
        for before, (word, name) in zip(("", *own), pairwise(own), strict=False)
        if word == "namespace" and before != "using"
    }
    templates = {match["name"] for line in near for match in _PERHAPS_TEMPLATE.finditer(line)}
    return not (reopened | templates) & supplied
