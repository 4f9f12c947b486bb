"""Removing what transport and typography add: line endings, invisible characters, terminal codes."""

from __future__ import annotations

import re

from kernelproof.extraction.reasons import remark

# ECMA-48 control sequences (CSI) and operating-system commands (OSC); the bounds keep matching linear.
_ANSI = r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|\x1b[@-Z\\^_]"

_STEPS = (
    ("surrogates", re.compile("[\ud800-\udfff]"), "\N{REPLACEMENT CHARACTER}"),
    ("ansi", re.compile(_ANSI), ""),
    ("nul", re.compile("\x00"), ""),
    ("line_endings", re.compile(r"\r\n?"), "\n"),
    ("zero_width", re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"), ""),
    ("spaces", re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"), " "),
)


def normalise(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without what no program needs, and a warning that names the kinds found, if any were."""
    kinds: list[str] = []
    for kind, pattern, replacement in _STEPS:
        text, count = pattern.subn(replacement, text)
        if count:
            kinds.append(kind)
    return text, (remark("normalised", ", ".join(kinds)),) if kinds else ()


_CURLY_OR_LITERAL = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|' + r"'''(?:[^\\]|\\.)*?'''|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|"
    r"#[^\n]*|(?P<double>[\u201c-\u201f])|(?P<single>[\u2018-\u201b])",
    re.DOTALL,
)


def straighten_quotes(code: str) -> str:
    """The code with typographic quotes made straight, those inside string literals and comments kept."""

    def straight(match: re.Match[str]) -> str:
        if match["double"]:
            return '"'
        return "'" if match["single"] else match[0]

    return _CURLY_OR_LITERAL.sub(straight, code)
