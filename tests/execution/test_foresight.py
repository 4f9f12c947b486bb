"""What a source shows of its builds is what it asks for when it runs; what it hides is not guessed."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contestant import requests
from pipeline.execution.foresight import foreseen
from pipeline.nouns import BuildRequest

IMPORT = "from torch.utils.cpp_extension import load_inline\n"
PLAIN = """
import textwrap
import torch
from torch.utils import cpp_extension

NAME = "relu"
cpp_source = "void relu(torch::Tensor x);"
body = textwrap.dedent('''
    // {braces}
    void relu(torch::Tensor x) {}
''').strip()
threads: int = 256
cuda_source = f"#define THREADS {threads}\\n" + body
flags = ["-O3"] + ["-lineinfo"]

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ext = cpp_extension.load_inline(NAME + "_ext", [cpp_source], cuda_source, functions=(NAME,),
                                             extra_cuda_cflags=flags, verbose=False)
"""
HIDDEN = {
    "bound twice": "s = 'a'\ns = 'b'\nload_inline('n', s)",
    "bound in a function, too": "s = 'a'\ndef f(s):\n    pass\nload_inline('n', s)",
    "grown": "s = 'a'\ns += 'b'\nload_inline('n', s)",
    "bound in a branch": "if x:\n    s = 'a'\nload_inline('n', s)",
    "a loop's": "for s in 'ab':\n    load_inline(s, s)",
    "not bound": "load_inline('n', s)",
    "stands for itself": "s = s + 'a'\nload_inline('n', s)",
    "in a circle": "a = b\nb = a\nload_inline('n', a)",
    "computed": "load_inline('n', 'a'.upper())",
    "a number for a source": "load_inline('n', [1])",
    "lists in lists": "load_inline('n', [['a']])",
    "unpacked": "load_inline(**{'name': 'n'})",
    "starred": "load_inline(*['n', 'a'])",
    "named, not called": "f = load_inline\nf('n', 'a')",
    "called and passed on": "load_inline('n', 'a')\nprint(load_inline)",
    "another loader": "from torch.utils.cpp_extension import load\nload_inline('n', 'a')",
    "another loader's attribute": "load_inline('n', 'a')\ntorch.utils.cpp_extension.load('m', ['f.cpp'])",
    "a kernel by itself": "load_inline('n', 'a')\ntorch.cuda._compile_kernel('k', 'k')",
    "headers of its own": "load_inline('n', 'a', extra_include_paths=['/tmp/mine'])",
    "headers wherever it is": "load_inline('n', 'a', extra_include_paths=['.', '/usr/include'])",
    "no such argument": "load_inline('n', 'a', colour='red')",
    "no name for a module": "load_inline('a b', 'a')",
    "half a character": "load_inline('n', '\\ud800')",
    "doubled till it is too long": "a0 = 'x' * 1\n"
    + "".join(f"a{i + 1} = a{i} + a{i}\n" for i in range(60))
    + "load_inline('n', a60)",
    "many long ones": "a0 = 'x'\n"
    + "".join(f"a{i + 1} = a{i} + a{i}\n" for i in range(20))
    + "".join(f"b{i} = a20 + '{i}'\n" for i in range(99))
    + f"load_inline('n', [{', '.join(f'b{i}' for i in range(99))}])",
    "a number of many digits": f"n = 0x{'f' * 9000}\nload_inline('n', f'{{n}}')",
    "no Python": "load_inline('n', ",
    "deep": f"load_inline('n', {'(' * 50}'a'{' + chr(1))' * 50})",
}


def asked(source: str) -> list[BuildRequest]:
    """What the source asks for when it runs, each once."""
    found: list[BuildRequest] = []

    def load_inline(*arguments: Any, **options: Any) -> None:
        request = BuildRequest.model_validate(requests.load_inline(*arguments, **options))
        found.extend([request] if request not in found else [])

    exec(source.replace(IMPORT, ""), {"load_inline": load_inline, "textwrap": textwrap})
    return found


def test_a_usual_candidate_shows_all() -> None:
    assert foreseen(PLAIN) == (
        BuildRequest(
            name="relu_ext",
            cpp_sources=("void relu(torch::Tensor x);",),
            cuda_sources=("#define THREADS 256\n// {braces}\nvoid relu(torch::Tensor x) {}",),
            functions={"relu": "relu"},
            extra_cuda_cflags=("-O3", "-lineinfo"),
            with_cuda=True,
        ),
    )


def test_a_candidate_without_any_shows_that() -> None:
    assert foreseen("class ModelNew: pass") == ()


def test_the_same_twice_is_one() -> None:
    once = foreseen(f"{IMPORT}load_inline('n', 'a')")
    assert once is not None and foreseen(f"{IMPORT}load_inline('n', 'a')\nload_inline('n', ['a'])") == once


def test_headers_of_the_machine_are_shown() -> None:
    shown = foreseen(f"{IMPORT}load_inline('n', 'a', extra_include_paths=['/usr/local/cuda/include'])")
    assert shown is not None and shown[0].extra_include_paths == ("/usr/local/cuda/include",)


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN)
def test_what_is_not_shown_is_not_guessed(source: str) -> None:
    assert foreseen(IMPORT + source) is None


texts = st.text("ab{}\n \\\"'", max_size=6)
names = st.sampled_from([f"n{i}" for i in range(6)])


def strings(depth: int) -> st.SearchStrategy[str]:
    """Source of an expression that may be a text: a name may not be bound."""
    if depth == 0:
        return texts.map(repr) | names
    inner = strings(depth - 1)
    return (
        inner
        | st.tuples(inner, inner).map(lambda pair: f"({pair[0]} + {pair[1]})")
        | inner.map(lambda text: f"({text}).strip()")
        | inner.map(lambda text: f"textwrap.dedent({text})")
        | st.tuples(names, texts).map(lambda p: f"f{p[1].replace('{', '').replace('}', '')!r}'{{{p[0]}}}'")
        | names.map(lambda name: f"f'<{{{name}}}>'")
    )


sources = strings(2) | st.lists(strings(1), max_size=3).map(lambda items: f"[{', '.join(items)}]")
statements = st.tuples(names, strings(2)).map(lambda pair: f"{pair[0]} = {pair[1]}")
calls = st.builds(
    "load_inline({!r}, {}, functions={}, verbose=True)".format,
    st.sampled_from(["one", "two"]),
    sources,
    strings(1) | st.lists(strings(1), max_size=2).map(lambda items: f"({', '.join([*items, ''])})"),
)


@given(st.lists(statements, max_size=5), st.lists(calls, min_size=1, max_size=2))
def test_what_is_foreseen_is_asked_for(before: list[str], after: list[str]) -> None:
    source = IMPORT + "\n".join((*before, *after))
    shown = foreseen(source)
    if shown is None:
        return
    try:
        found = asked(source)
    except NameError:  # a name that is bound below its use; nothing is asked for then
        return
    assert list(shown) == found
