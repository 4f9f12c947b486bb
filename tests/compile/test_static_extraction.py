"""What a source shows of its builds is what it asks for when it runs; what it hides is not guessed."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.compile.static_extraction.builds import init_arguments, static_builds
from kernelproof.contestant import requests
from kernelproof.problems import open_suite
from kernelproof.types import BuildRequest

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
    "a loop's, over something unknown": "for s in x():\n    load_inline('n', s)",
    "unpacked, of something unknown": "load_inline('n', **x())",
    "a parameter of what nobody calls": "def f(s):\n    return load_inline('n', s)",
    "doubled in a loop": "s = 'x'\nfor i in range(999):\n    s = s + s\nload_inline('n', s)",
    "wide": "load_inline('n', '{:9999999999}'.format('a'))",
    "wide by a sign": "load_inline('n', '%9999999999d' % 1)",
    "replaced by too much": "a = 'x' * 9999\nload_inline('n', a.replace('x', a).replace('x', a))",
    "attributes of a format": "load_inline('n', '{0.__class__}'.format('a'))",
    "not bound": "load_inline('n', s)",
    "stands for itself": "s = s + 'a'\nload_inline('n', s)",
    "in a circle": "a = b\nb = a\nload_inline('n', a)",
    "a number for a source": "load_inline('n', [1])",
    "lists in lists": "load_inline('n', [['a']])",
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


def shown(source: str, **given: Any) -> list[BuildRequest]:
    """What the source shows, which is all."""
    found = static_builds(source, **given)
    assert found.complete
    return list(found.requests)


def test_a_usual_candidate_shows_all() -> None:
    assert shown(PLAIN) == [
        BuildRequest(
            name="relu_ext",
            cpp_sources=("void relu(torch::Tensor x);",),
            cuda_sources=("#define THREADS 256\n// {braces}\nvoid relu(torch::Tensor x) {}",),
            functions={"relu": "relu"},
            extra_cuda_cflags=("-O3", "-lineinfo"),
            with_cuda=True,
        ),
    ]
    assert static_builds(PLAIN).certain == static_builds(PLAIN).requests


def test_a_candidate_without_any_shows_that() -> None:
    assert shown("class ModelNew: pass") == []


def test_the_same_twice_is_one() -> None:
    once = shown(f"{IMPORT}load_inline('n', 'a')")
    assert shown(f"{IMPORT}load_inline('n', 'a')\nload_inline('n', ['a'])") == once


def test_headers_of_the_machine_are_shown() -> None:
    found = shown(f"{IMPORT}load_inline('n', 'a', extra_include_paths=['/usr/local/cuda/include'])")
    assert found[0].extra_include_paths == ("/usr/local/cuda/include",)


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN)
def test_what_is_not_shown_is_not_guessed(source: str) -> None:
    assert not static_builds(IMPORT + source).complete


def test_what_one_call_hides_another_shows() -> None:
    found = static_builds(f"{IMPORT}load_inline('n', 'a')\nload_inline('m', x())")
    assert [request.name for request in found.requests] == ["n"] and not found.complete


MODEL = "class ModelNew(torch.nn.Module):\n    "
SHOWN: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "bound twice": ("s = 'a'\ns = 'b'\nload_inline('n', s)", [("n", "b")]),
    "bound in a function, too": ("s = 'a'\ndef f(s):\n    pass\nload_inline('n', s)", [("n", "a")]),
    "grown": ("s = 'a'\ns += 'b'\nload_inline('n', s)", [("n", "ab")]),
    "grown in a list": (
        "s = []\ns.append('a')\ns.extend(('b',))\nload_inline('n', ''.join(s))",
        [("n", "ab")],
    ),
    "bound in either branch": (
        "if x:\n    s = 'a'\nelse:\n    s = 'b'\nload_inline('n', s)",
        [("n", "a"), ("n", "b")],
    ),
    "called in either branch": (
        "if x:\n    load_inline('n', 'a')\nelse:\n    load_inline('n', 'b')",
        [("n", "a"), ("n", "b")],
    ),
    "in the branch that is taken": ("if 1 > 2:\n    load_inline('n', 'a')", []),
    "behind a GPU": (
        "if torch.cuda.is_available():\n    load_inline('n', 'a')\nelse:\n    load_inline('n', 'b')",
        [("n", "a")],
    ),
    "a loop's": ("for s in ['a', 'b']:\n    load_inline(s, s)", [("a", "a"), ("b", "b")]),
    "a loop's over a dictionary": (
        "for name, s in {'n': 'a', 'm': 'b'}.items():\n    load_inline(name, s)",
        [("n", "a"), ("m", "b")],
    ),
    "computed": ("load_inline('n', 'a'.upper())", [("n", "A")]),
    "filled in": ("load_inline('n', '{} {x}'.format('a', x=2))", [("n", "a 2")]),
    "filled in by a sign": ("load_inline('n', '%s-%d%%' % ('a', 2))", [("n", "a-2%")]),
    "replaced": ("load_inline('n', 'TYPE f;'.replace('TYPE', 'int'))", [("n", "int f;")]),
    "joined": ("load_inline('n', '+'.join(s for s in ('a', 'b')))", [("n", "a+b")]),
    "unpacked": ("k = dict(name='n')\nk['cpp_sources'] = 'a'\nload_inline(**k)", [("n", "a")]),
    "starred": ("load_inline(*['n', 'a'])", [("n", "a")]),
    "named by its hash": (
        "import hashlib\ns = 'a'\nload_inline('n' + hashlib.md5(s.encode()).hexdigest()[:4], s)",
        [("n0cc1", "a")],
    ),
    "a default": ("def f(s='a'):\n    return load_inline('n', s)\nf()", [("n", "a")]),
    "a parameter": (
        "def f(name, s, *, end=';'):\n    return load_inline(name, s + end)\n"
        "f('n', 'a')\nf('m', s='b', end='')",
        [("n", "a;"), ("m", "b")],
    ),
    "made once, when it is wanted": (
        "e = None\ndef f():\n    global e\n    if e is None:\n        e = load_inline('n', 'a')\n"
        + "    return e\n"
        + MODEL
        + "def forward(self, x):\n        return f().g(x)",
        [("n", "a")],
    ),
    "on self": (
        MODEL
        + "NAME = 'n'\n    def __init__(self):\n        self.s = f'{self.NAME}{1}'\n"
        + "        self.e = self.built()\n"
        + "    def built(self):\n        s = self.s\n        return load_inline(self.NAME, s)",
        [("n", "n1")],
    ),
    "a property's": (
        MODEL
        + "@property\n    def e(self):\n        return load_inline('n', 'a')\n"
        + "    def forward(self, x):\n        return self.e.f(x)",
        [("n", "a")],
    ),
    "a method's of a class": (
        "class K:\n    e = None\n    @classmethod\n    def get(cls):\n        if cls.e is None:\n"
        "            cls.e = load_inline('n', cls.text())\n        return cls.e\n"
        "    @staticmethod\n    def text():\n        return 'a'",
        [("n", "a")],
    ),
    "tried, and something else where that fails": (
        "try:\n    load_inline('n', 'a')\nexcept Exception:\n    load_inline('m', 'b')",
        [("n", "a")],
    ),
    "where a library is not there": (
        "try:\n    import library\nexcept ImportError:\n    load_inline('m', 'b')",
        [("m", "b")],
    ),
    "by the GPU's kind": (
        "a, b = torch.cuda.get_device_capability()\nload_inline('n', f'{a}{b}')",
        [("n", "90")],
    ),
    "by what the model is made with": (
        MODEL + "def __init__(self, n, m=2):\n        load_inline('n', f'{n}x{m}')",
        [("n", "7x2")],
    ),
}


@pytest.mark.parametrize(("source", "said"), SHOWN.values(), ids=SHOWN)
def test_what_is_shown_is_foreseen(source: str, said: list[tuple[str, str]]) -> None:
    found = shown(f"{IMPORT}import torch\n{source}", capability=(9, 0), arguments=[7])
    assert [(request.name, "".join(request.cpp_sources)) for request in found] == said


def test_without_a_gpu_the_other_branch_is_taken() -> None:
    source = "import torch\nload_inline('n', 'a' if torch.cuda.is_available() else 'b')"
    (request,) = shown(IMPORT + source, gpu=False)
    assert request.cpp_sources == ("b",)


@pytest.mark.parametrize(
    ("source", "certain"),
    [
        ("load_inline('n', 'a')", True),
        (MODEL + "def __init__(self):\n        load_inline('n', 'a')", True),
        (MODEL + "def forward(self):\n        load_inline('n', 'a')", False),
        ("if x:\n    load_inline('n', 'a')", False),
        ("try:\n    load_inline('n', 'a')\nexcept Exception:\n    pass", False),
    ],
)
def test_what_is_asked_for_whatever_happens_is_told(source: str, certain: bool) -> None:
    found = static_builds(f"{IMPORT}import torch\n{source}")
    assert found.complete and len(found.requests) == 1
    assert found.certain == (found.requests if certain else ())


def test_what_problems_construct_models_with_is_read() -> None:
    suite = open_suite()
    assert init_arguments(suite.find("level1/1"), "full") == []
    sized = [suite.find(name) for name in suite.ids]
    assert all(init_arguments(problem, size) is not None for problem in sized for size in problem.sizes)


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
    source = "\n".join((IMPORT, "import textwrap", *before, *after))
    seen = static_builds(source)
    if not seen.complete:
        return
    try:
        found = asked(source)
    except NameError:  # a name that is bound below its use; nothing is asked for then
        return
    assert list(seen.requests) == found
