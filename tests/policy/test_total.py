"""A review of any text ends with findings, never with an exception, and soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.verifier.policy import RULES, review
from tests.policy.samples import CLEAN, PROBLEM

LINES = [
    *CLEAN.splitlines(),
    *(
        "a = a",
        "a = b; b = a",
        "a += a",
        "load_inline(*args)",
        "load_inline(name='x', functions=3)",
        "del torch.a",
    ),
    *(
        "class ModelNew: pass",
        "class ModelNew(ModelNew): pass",
        "ModelNew = ModelNew",
        "def forward(self): ...",
    ),
    *(
        "lambda *, a: a",
        "f'{x!r:>{w}}'",
        "(yield)",
        "import a.b.c as d, e",
        "from . import f",
        "a[b].c: int = 1",
    ),
    *("match x:\n    case {'a': 1, **r} | [*s]: pass", "functions = {**a, 'b': 1}", "async def g(): await h"),
    *(
        "    x = 1",
        "if a:",
        "else:",
        "try:",
        "except* E as e:",
        "\ud800",
        "[a, b.c] = torch.d, 1",
        "@staticmethod",
    ),
]


@given(
    st.lists(st.sampled_from(LINES), max_size=30).map("\n".join) | st.text(), st.sampled_from(["cuda", "cpp"])
)
@settings(max_examples=300, deadline=None)
def test_any_text_is_reviewed(source: str, backend: str) -> None:
    found = review(source, PROBLEM, "cuda" if backend == "cuda" else "cpp")

    assert {finding.rule for finding in found} <= {rule.name for rule in RULES}
    assert found == review(source, PROBLEM, "cuda" if backend == "cuda" else "cpp")


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_program_with_lines_missing_is_reviewed(data: st.DataObject) -> None:
    lines = CLEAN.splitlines()
    gone = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=6))

    review("\n".join(line for number, line in enumerate(lines) if number not in gone), PROBLEM, "cuda")


@pytest.mark.ci
def test_long_sources_take_seconds_of_a_core() -> None:
    strings = "s0 = '/* (' * 3 + '{{ \\'\n'" + "".join(f"\ns{i + 1} = s{i} + s{i}" for i in range(60))
    comments = (
        "s = '" + '/* " ( ) {' * 50_000 + "'\nimport torch\nload_inline(cpp_sources=s, functions=['f'])"
    )
    calls = "import torch\n" + "torch.a.b(x)\n" * 20_000
    start = time.process_time()

    for source in (strings, comments, calls):
        review(source, PROBLEM, "cuda")

    assert time.process_time() - start < 20
