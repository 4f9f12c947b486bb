"""With a stub of torch, a candidate asks for what it asks for with torch, or is run once more with torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from kernelproof.types import Build, BuildRequest, BuildState, VerifySettings
from kernelproof.verifier.build import Toolchain, learn_toolchain
from kernelproof.verifier.engine import build_stage
from kernelproof.verifier.engine.build_stage import Prebuilt, lines_of_loaders, names_builds, stub_builds
from kernelproof.verifier.sandbox import Group
from tests.referee.problems import text, written

PROBLEM = text(
    "return torch.relu(x)",
    "torch.rand(N, N)",
    top="\nN = 9\nSIZES = {'full': {'N': 7}}\n",
    parameters="n",
    arguments="N",
)
HEAD = (
    "import torch\nfrom torch.utils import cpp_extension\nfrom torch.utils.cpp_extension import load_inline\n"
)
BUILT = "load_inline('n7', '')"
MODEL = "class ModelNew(torch.nn.Module):\n    "


def forward(*lines: str) -> str:
    """A model with this forward."""
    return MODEL + "def forward(self, x):\n        " + "\n        ".join(lines) + "\n"


WHOLE = forward("return torch.relu(x)")
"""A model that builds nothing."""
WIRE = """
import gc, json, os, socket
(sock,) = [each for each in gc.get_objects() if isinstance(each, socket.socket)]
def send(text):
    sock.sendall(len(text).to_bytes(4, "big") + text.encode())
"""
"""A candidate that speaks for its runner."""
END = {"stage": "end", "called": [], "guessed": False, "unknown": False, "message": "", "traceback": ""}

Seen = tuple[list[BuildRequest], Prebuilt | None]
Run = Callable[..., Seen]


@pytest.fixture
def toolchain(cache: Path) -> Toolchain:
    return learn_toolchain(cache).model_copy(update={"architecture": "9.0a"})


@pytest.fixture
def run(toolchain: Toolchain, tmp_path: Path) -> Run:
    """Runs a source with the stub; what it asks for, and what that shows. Builds named `bad` fail."""
    problem = written(tmp_path, PROBLEM)
    (tmp_path / "lib.so").write_bytes(b"")

    def run(source: str, backend: Literal["cuda", "cpp"] = "cuda", **settings: Any) -> Seen:
        requests: list[BuildRequest] = []

        def build(request: BuildRequest) -> Build:
            requests.append(request)
            if request.name == "bad":
                return Build(key="", state=BuildState.ERROR, name=request.name, log="error: no such thing")
            library = str(tmp_path / "lib.so")
            return Build(key="", state=BuildState.OK, name=request.name, library=library)

        chosen = VerifySettings(backend=backend, memory_bytes=1 << 30, **settings)
        return requests, stub_builds(build, toolchain, source, chosen, problem, Group())

    return run


def test_a_usual_candidate_shows_its_whole_request(run: Run) -> None:
    source = '''
import textwrap
import torch
from torch.utils import cpp_extension

NAME = "relu"
body = textwrap.dedent("""
    // {braces}
    void relu(torch::Tensor x) {}
""").strip()
threads: int = 256
flags = ["-O3"] + ["-lineinfo"]

class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ext = cpp_extension.load_inline(
            NAME + "_ext", ["void relu(torch::Tensor x);"], f"#define THREADS {threads}\\n" + body,
            functions=(NAME,), extra_cuda_cflags=flags, verbose=False)

    def forward(self, x):
        return self.ext.relu(x.contiguous())
'''
    asked, shown = run(source)
    assert asked == [
        BuildRequest(
            name="relu_ext",
            cpp_sources=("void relu(torch::Tensor x);",),
            cuda_sources=("#define THREADS 256\n// {braces}\nvoid relu(torch::Tensor x) {}",),
            functions={"relu": "relu"},
            extra_cuda_cflags=("-O3", "-lineinfo"),
            with_cuda=True,
        ),
    ]
    assert shown is not None and list(shown.contents) == [asked[0].content_sha256]


SHOWN: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "by plain Python": (
        "import hashlib\nk = dict(name='n')\nk['cpp_sources'] = '{} {x}'.format('a', x=2)\nload_inline(**k)\n"
        "for s in map(str, (1, 2)):\n    load_inline('n' + s, s.upper())\n"
        "class K:\n    ext = load_inline('n' + hashlib.md5(b'a').hexdigest()[:4], 'a')",
        [("n", "a 2"), ("n1", "1"), ("n2", "2"), ("n0cc1", "a")],
    ),
    "read from its own file": (
        "import re\nload_inline('n', re.search('int (a);', open(__file__).read())[1])  # int a;",
        [("n", "a")],
    ),
    "written to a file": (
        "open('a.cpp', 'w').write('int a;')\ncpp_extension.load('n', ['a.cpp'])",
        [("n", "int a;")],
    ),
    "by the environment": ("import os\nload_inline('n', os.environ.get('NO_SUCH', 'a'))", [("n", "a")]),
    "behind a GPU, by its kind": (
        "if torch.cuda.is_available():\n    load_inline('n', '%d%d' % torch.cuda.get_device_capability())\n"
        "else:\n    raise RuntimeError",
        [("n", "90")],
    ),
    "where there is no such module": (
        "try:\n    import torch.no_such_module\nexcept ImportError:\n    load_inline('n', 'a')\n"
        "try:\n    import no_such_package\nexcept ImportError:\n    load_inline('m', 'b')",
        [("n", "a"), ("m", "b")],
    ),
    "for an operator": (
        "torch.ops.load_library(load_inline('n', 'a', is_python_module=False))",
        [("n", "a")],
    ),
    "called in threads": (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool:\n"
        "    list(pool.map(lambda n: load_inline(n, 'a'), ['n']))",
        [("n", "a")],
    ),
}


@pytest.mark.parametrize(("source", "said"), SHOWN.values(), ids=SHOWN)
def test_what_it_asks_for_when_it_is_imported_is_shown(
    run: Run, source: str, said: list[tuple[str, str]]
) -> None:
    asked, shown = run(f"{HEAD}{source}\n{WHOLE}")
    assert shown is not None
    assert [(each.name, "".join((*each.cpp_sources, *each.files.values()))) for each in asked] == said


LATER: dict[str, str] = {
    "by what it is made with": MODEL + "def __init__(self, n):\n        load_inline(f'n{n}', '')",
    "once, when it is wanted": "e = None\ndef get():\n    global e\n    if e is None:\n"
    f"        e = {BUILT}\n    return e\n" + forward("return get().f(x)"),
    "where an attribute is missing": forward(
        "if not hasattr(self, 'ext'):", f"    self.ext = {BUILT}", "return self.ext.f(x)"
    ),
    "where an attribute is None": forward(
        "if getattr(self, '_ext', None) is None:", f"    self._ext = {BUILT}", "return self._ext.f(x)"
    ),
    "by a property": forward("return self.e.f(x)")
    + f"    @property\n    def e(self):\n        return {BUILT}",
    "by a function with a gradient": "class F(torch.autograd.Function):\n    @staticmethod\n"
    "    @torch.cuda.amp.custom_fwd\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n"
    f"        return {BUILT}.f(x)\n" + forward("return F.apply(x)"),
    "below decorators": "@torch.jit.script\ndef scale(x):\n    return x * 2\n"
    + forward(f"return {BUILT}.f(scale(x))").replace(
        "def forward", "@torch.no_grad()\n    @torch.compile(mode='default')\n    def forward"
    ),
    "beside layers and buffers": MODEL
    + "def __init__(self, n):\n        super().__init__()\n        self.conv = torch.nn.Conv2d(n, n, 3)\n"
    "        self.register_buffer('b', torch.zeros(n, dtype=torch.float32))\n"
    "        self.w = torch.nn.Parameter(self.conv.weight.data.clone() / n ** 0.5)\n"
    f"        self.ext = {BUILT}\n"
    "    def forward(self, x):\n        out = torch.empty_like(x)\n"
    "        self.ext.f(self.conv(x) + self.b, self.w, out, x.numel() // 4)\n        return out",
}


@pytest.mark.parametrize("source", LATER.values(), ids=LATER)
def test_what_it_asks_for_when_it_is_made_or_called_is_shown(run: Run, source: str) -> None:
    asked, shown = run(HEAD + source)
    assert shown is not None and [each.name for each in asked] == ["n7"]


def test_a_torch_that_a_pth_file_leads_to_is_stood_in_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment may have borrowed torch from another one."""
    monkeypatch.setattr(build_stage.site, "getsitepackages", lambda: [str(tmp_path)])
    asked, shown = run(f"{HEAD}load_inline('n', 'a')\n{WHOLE}")
    assert shown is not None and [each.name for each in asked] == ["n"]


def test_without_a_gpu_the_other_branch_is_taken(run: Run) -> None:
    source = f"{HEAD}load_inline('n', 'a' if torch.cuda.is_available() else 'b')\n{WHOLE}"
    assert [run(source, backend)[0][0].cpp_sources for backend in ("cuda", "cpp")] == [("a",), ("b",)]


NOT_SHOWN: dict[str, str] = {
    "by a tensor's value": "load_inline('n', f'{torch.ones(2).sum()}')\n" + WHOLE,
    "by a tensor's size": forward("for n in range(x.shape[0]):", "    load_inline('n', 'a')"),
    "behind a tensor's value": forward(f"return x if x.sum() > 0 else {BUILT}.f(x)"),
    "behind an attribute of torch's": forward(
        "if hasattr(torch, 'no_such'):", "    return x", f"return {BUILT}.f(x)"
    ),
    "setuptools": "import setuptools\n"
    + "setuptools.setup(ext_modules=[cpp_extension.CUDAExtension('n', ['a.cu'])])\n"
    + WHOLE,
    "NVRTC": forward("return torch.cuda._compile_kernel('void f() {}', 'f')(x)"),
    "a missing package": "import no_such_package\nload_inline('n', 'a')\n" + WHOLE,
    "an exception": "load_inline('n', 'a')\nraise ValueError\n" + WHOLE,
    "an exception whose text raises": "class E(Exception):\n    __str__ = None\nraise E\n" + WHOLE,
    "an exit": "load_inline('n', 'a')\nraise SystemExit\n" + WHOLE,
    "its end": "import os\nload_inline('n', 'a')\nos._exit(0)\n" + WHOLE,
    "a crash": "import os\nos.abort()\n" + WHOLE,
    "no Python": "load_inline('n', ",
    "no name for a module": "load_inline('a b', 'a')\n" + WHOLE,
    "memory": "s = 'x'\nfor i in range(99):\n    s = s + s\n" + WHOLE,
    "more builds than one may ask for": "for i in range(70):\n    load_inline(f'n{i}', 'a')\n" + WHOLE,
    "an answer that is none": WIRE + "send('[1]')\nwhile True: pass",
    "an answer without end": WIRE + "sock.sendall(b'\\xff' * 9)\nwhile True: pass",
    "a pickle": WIRE
    + "import pickle\nsock.sendall(b'\\0\\0\\0\\x09' + pickle.dumps(print)[:9])\nos._exit(0)",
    "an answer of other types": WIRE + f"send(json.dumps({END | {'called': ['x']}}))\nos._exit(0)",
    "an answer that is too long": WIRE + f"send(json.dumps({END} | dict(message='x' * 99999)))\nos._exit(0)",
    "an answer with half a character": WIRE
    + f"send(json.dumps({END | {'message': chr(0xD800)}}))\nos._exit(0)",
}


@pytest.mark.parametrize("source", NOT_SHOWN.values(), ids=NOT_SHOWN)
def test_what_is_not_shown_is_left_to_torch(run: Run, source: str) -> None:
    assert run(HEAD + source)[1] is None


def test_one_that_hangs_is_ended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_stage, "STUB_SECONDS", 1.0)
    assert run(f"{HEAD}load_inline('n', 'a')\nwhile True: pass")[1] is None


def test_what_it_prints_writes_and_starts_is_of_no_interest(run: Run, tmp_path: Path) -> None:
    source = f"""{HEAD}
import os, sys
print("x" * 5_000_000, flush=True)
open("notes", "w").write("x" * 100_000)
try:
    open({str(tmp_path / "problem.py")!r}, "w").write("")
except OSError:
    pass
for _ in range(3):
    if os.fork() == 0:
        while True: pass
load_inline('n', 'a')
{WHOLE}"""
    asked, shown = run(source)
    assert shown is not None and [each.name for each in asked] == ["n"]
    assert (tmp_path / "problem.py").read_text() == PROBLEM


def test_an_answer_that_is_forged_gives_nothing_but_a_later_build(run: Run) -> None:
    asked, shown = run(f"{HEAD}{WIRE}send(json.dumps({END}))\nos._exit(0)")
    assert asked == [] and shown is not None and shown.builds == () and shown.raised == ""
    claim = END | {"stage": "load", "message": "Error building extension 'n': no", "called": [4]}
    asked, shown = run(f"{HEAD}load_inline('n', 'a')\n{WIRE}send(json.dumps({claim}))\nos._exit(0)")
    assert [each.name for each in asked] == ["n"] and shown is None  # a build that works has not failed


@pytest.mark.parametrize(
    ("source", "certain"),
    [
        ("load_inline('bad', 'a')", True),
        ("load_inline('n', 'a')\nload_inline('bad', 'a')", True),
        (MODEL + "def __init__(self, n):\n        load_inline('bad', 'a')", True),
        (forward("load_inline('bad', 'a')"), False),
        ("if torch.ones(1) > 0:\n    load_inline('bad', 'a')", False),
        ("if hasattr(torch, 'no_such'):\n    load_inline('bad', 'a')", False),
        ("try:\n    torch.no_such\n    load_inline('bad', 'a')\nexcept AttributeError:\n    pass", False),
        ("from contextlib import suppress\nwith suppress(Exception):\n    load_inline('bad', 'a')", False),
        ("load_inline('bad', 'a', no_such=1)", False),
    ],
)
def test_a_build_that_fails_ends_it_where_torch_makes_no_difference(
    run: Run, source: str, certain: bool
) -> None:
    _, shown = run(f"{HEAD}{source}\n{WHOLE if MODEL not in source else ''}")
    if not certain:
        assert shown is None
        return
    assert shown is not None and shown.builds[-1].state is BuildState.ERROR
    assert shown.raised == "Error building extension 'bad': error: no such thing"
    assert "candidate.py" in shown.trouble


def test_lines_that_name_a_loader_are_those_that_build() -> None:
    source = "load_inline()\nx.load_inline\ntorch.load(f)\ncpp_extension.load\nload = 1\njson.load(f)\n'load'"
    assert lines_of_loaders(source) == {1, 2, 4}
    assert not names_builds("import torch\nx = torch.relu(x)") and names_builds(HEAD)
