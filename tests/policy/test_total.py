"""A review of any text ends with findings, never with an exception, soon, and beside others; native source is
seen through the ways in which programs put strings together."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof import pysource
from kernelproof.verifier.policy import RULES, review
from tests.policy.samples import CLEAN, PROBLEM, changed, findings

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


PROTOTYPE = "torch::Tensor scale(torch::Tensor x, torch::Tensor y, double scale);"
WRONG = "torch::Tensor scale(torch::Tensor x);"


@pytest.mark.parametrize(
    "statements",
    [
        "proto = '{}'",
        "first = '{}'\nproto = first",
        "proto = '' + '{}'",
        "proto = ''\nproto += '{}'",
        "proto = f'{{NAME}} {}'",
        "import textwrap\nproto = textwrap.dedent('''\n    {}\n''')",
        "proto = ['{}']",
        "proto = '{}'.strip()",
    ],
)
def test_a_prototype_is_found_behind(statements: str) -> None:
    using = changed(f'cpp_sources="{PROTOTYPE}"', "cpp_sources=proto")

    def program(prototype: str) -> str:
        return changed("ext = ", statements.replace("{}", prototype) + "\n\next = ", using)

    assert findings(program(WRONG), "unmatched_prototype")
    assert findings(program(PROTOTYPE), "unmatched_prototype") == []


@pytest.mark.parametrize("value", ["read()", "proto", "'a{}'.format(1)", "f(proto) + 'x'"])
def test_what_the_source_does_not_show_is_not_judged(value: str) -> None:
    source = changed("ext = ", f"proto = {value}\n\next = ", CLEAN).replace(f'"{PROTOTYPE}"', "proto")

    assert findings(source, "unmatched_prototype") == []
    assert findings(source, "missing_cpp_sources") == []


SOURCE = Path(pysource.__file__).read_text() * 3


@pytest.fixture
def interruptions() -> Iterator[None]:
    """Other threads run in the middle of everything that makes objects."""

    def give_way(_phase: str, _info: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(give_way)


def test_programs_are_parsed_side_by_side(interruptions: None) -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(pysource.parse, [SOURCE] * 32))
    assert not [tree for tree in trees if isinstance(tree, SyntaxError)]
