"""The small faults that `scripts/fault_places.py` puts into source."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from scripts.fault_places import faults, source_files, works

ROOT = Path(__file__).parents[2]


def changes(source: str, kind: str = "") -> set[str]:
    """All sources that one fault of this kind makes of a source."""
    return {fault.applied(source) for fault in faults("file.py", source) if kind in ("", fault.kind)}


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ("a < b", "operator", {"a <= b"}),
        ("a is not b", "operator", {"a is b"}),
        ("a < b not in c", "operator", {"a <= b not in c", "a < b in c"}),
        ("(a) + (  # one +\n b)", "operator", {"(a) - (  # one +\n b)"}),
        ("a * b", "operator", {"a / b"}),
        ("a and b", "operator", {"a or b"}),
        ("not a", "operator", {"(a)"}),
        ("x = 'é' in a", "operator", {"x = 'é' not in a"}),
        ("a and b and c", "condition", {"((b) and (c))", "((a) and (c))", "((a) and (b))"}),
        ("if a:\n    b", "condition", {"if True:\n    b", "if False:\n    b"}),
        ("while a:\n    b", "condition", {"while False:\n    b"}),
        ("[a for a in b if a]", "condition", {"[a for a in b if True]"}),
        ("a if b else c", "condition", {"a if True else c"}),
        ("x = 1", "constant", {"x = 2"}),
        ("x = 0.5", "constant", {"x = 1.0"}),
        ("x = 0.0", "constant", {"x = 1.0"}),
        ("def f(a: int = 3): pass", "constant", {"def f(a: int = 4): pass"}),
        ("@d(frozen=True)\nclass C: pass", "constant", {"@d(frozen=False)\nclass C: pass"}),
        ("raise Exit(3)", "constant", {"raise Exit(4)"}),
        ("x['key']", "constant", {"x['key_']"}),
        ("f(a)", "statement", {"pass"}),
        ("a += b", "statement", {"pass"}),
        ("for a in b:\n    continue", "statement", {"for a in b:\n    pass"}),
        ("try:\n    f()\nexcept E:\n    g()", "statement",
         {"try:\n    pass\nexcept E:\n    g()", "try:\n    f()\nexcept E:\n    pass"}),
        ("match a:\n    case 1:\n        f()", "statement", {"match a:\n    case 1:\n        pass"}),
    ],
)  # fmt: skip
def test_the_faults_of_a_statement(source: str, kind: str, expected: set[str]) -> None:
    assert changes(source, kind) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring with 1 < 2."""',
        "x: Literal['word', 1]",
        "def f(a: Literal['word']) -> Literal[1]: ...",
        "raise ValueError('word', 1)",
        "print('word', 1)",
        "_LOG.warning('word', 1)",
        "x = f'{a < 1}'",
        "x = 'no single word'",
        "x = A | None",
        "x = y / 'word of a path'",
        "if TYPE_CHECKING:\n    x = 1",
        "__all__ = ['word']",
        "from a import b",
    ],
)
def test_texts_and_types_are_left_alone(source: str) -> None:
    assert changes(source) == set()


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
def test_every_fault_of_this_source_parses_and_differs_in_one_place(seed: int) -> None:
    draw = random.Random(seed)
    for file in draw.sample(source_files(ROOT), 4):
        source = (ROOT / file).read_text()
        every = faults(file, source)
        for fault in draw.sample(every, min(len(every), 15)):
            changed = fault.applied(source)
            ast.parse(changed)
            assert works(fault, source), fault
            rest = len(source.encode()) - fault.end
            before, after = source.encode(), changed.encode()
            assert before[: fault.start] == after[: fault.start]
            assert before[fault.end :] == after[len(after) - rest :]
            first_line = before[: fault.start].count(b"\n") + 1
            assert fault.line <= first_line <= fault.last_line, fault
