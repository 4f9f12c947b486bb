"""Triton: compiled for a GPU without one, and interpreted where there is none."""

from __future__ import annotations

import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kernelproof.backends import backend
from kernelproof.types import (
    Build,
    BuildRequest,
    BuildState,
    Flag,
    Origin,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.verifier.build import Builder
from kernelproof.verifier.contestant.extensions import PLACE
from kernelproof.verifier.devices import discovery
from kernelproof.verifier.engine.build_stage import Prebuilt, compile_ahead
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.policy import review
from kernelproof.verifier.sandbox import Group, Job, run
from kernelproof.verifier.sandbox.paths import python_paths
from kernelproof.verifier.workers.client import Contestant
from tests.backends import triton_programs as programs

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

SETTINGS = VerifySettings(backend="triton", trials=1)
TRITON = backend("triton")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def builder(cache: Path) -> Builder:
    return Builder(cache)


@pytest.fixture(scope="module")
def engine(cache: Path) -> Engine:
    with Engine(cache) as made:
        yield made


def ahead(builder: Builder, source: str, folder: Path) -> Prebuilt:
    return compile_ahead(builder, source, SETTINGS, Group(), programs.problem(folder))


def files(build: Build) -> dict[str, bytes]:
    """What the compiler left, by its path."""
    assert build.library is not None
    with zipfile.ZipFile(build.library) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


@pytest.mark.parametrize(
    ("source", "own"),
    [
        (programs.RELU, True),
        (programs.TUNED, True),
        (programs.NO_LAUNCH, False),
        (programs.RELU.replace("@triton.jit", ""), False),
        (programs.RELU.replace("@triton.jit", "@triton.jit(do_not_specialize=['n'])"), True),
        ("class ModelNew:\n    def forward(self, x):\n        return torch.relu(x)\n", False),
        ("this is no Python", False),
    ],
)
def test_an_own_kernel_is_a_function_that_is_launched(source: str, own: bool, tmp_path: Path) -> None:
    assert TRITON.holds_own_code(source) is own
    found = [f.rule for f in review(source, programs.problem(tmp_path), "triton")]
    assert ("no_inline_kernel" in found) is (not own and source != "this is no Python")


@pytest.mark.ci
def test_a_kernel_is_compiled_for_a_gpu_that_is_not_here(builder: Builder, tmp_path: Path) -> None:
    found = ahead(builder, programs.RELU, tmp_path)
    assert found.first_calls is not None and found.first_calls.state is BuildState.OK, found
    assert found.refused == "" and found.first_calls.duration_s > 0
    made = files(found.first_calls)
    (cubin,) = (text for name, text in made.items() if name.endswith(".cubin"))
    assert cubin.startswith(b"\x7fELF")
    (group,) = (text for name, text in made.items() if "__grp__" in name)
    assert f'"{PLACE}/'.encode() in group, "files are named by a path that is the same in any process"
    again = ahead(builder, programs.RELU, tmp_path)
    assert again.first_calls is not None and again.first_calls.cached and again.sandbox is None


ASKS_FOR_HITS = (
    programs.RELU
    + """
import sys
from triton import knobs
knobs.compilation.listener = lambda *, cache_hit, **_: print("hit" if cache_hit else "compiled", flush=True)
"""
)


@pytest.mark.ci
@pytest.mark.parametrize("handed_on", [True, False])
def test_what_was_compiled_is_not_compiled_again_where_it_is_handed_on(
    builder: Builder, tmp_path: Path, handed_on: bool
) -> None:
    """The process that is judged finds it by its content, as long as the compiler is the same."""
    found = ahead(builder, ASKS_FOR_HITS, tmp_path)
    assert found.first_calls is not None and found.first_calls.library is not None
    first = TRITON.first_call
    assert first is not None
    problem = programs.problem(tmp_path)
    hello = {"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}
    with (
        Path(found.first_calls.library).open("rb") as packed,
        Contestant(_no_builds, memory_bytes=16 << 30) as contestant,
    ):
        contestant.wait_ready()
        contestant.ask({**hello, "first_calls": first.message(interpret=False)}, seconds=60)
        contestant.ask({"op": "pretend", "device": "cuda", "capability": _capability(builder)}, seconds=60)
        fds = [packed.fileno()] if handed_on else []
        contestant.ask({"op": "load", "source": ASKS_FOR_HITS, "seed": 0}, seconds=60, fds=fds)
        call = {"op": "rehearse", "class": "ModelNew", "problem": problem.source, "sizes": {}}
        contestant.ask(call, seconds=60)
        assert contestant.close().stdout.split() == ["hit" if handed_on else "compiled"]


@pytest.mark.ci
def test_every_configuration_of_a_tuned_kernel_is_compiled(builder: Builder, tmp_path: Path) -> None:
    found = ahead(builder, programs.TUNED, tmp_path)
    assert found.first_calls is not None
    assert sum(name.endswith(".cubin") for name in files(found.first_calls)) == 4


def test_a_kernel_that_does_not_compile_never_gets_near_a_gpu(builder: Builder, tmp_path: Path) -> None:
    found = ahead(builder, programs.UNDEFINED, tmp_path)
    assert found.first_calls is not None and found.first_calls.state is BuildState.ERROR
    assert found.refused.startswith("a kernel did not compile: CompilationError at `")
    assert "has no attribute 'rectified'" in found.refused
    assert "tl.rectified(x)" in found.first_calls.log
    again = ahead(builder, programs.UNDEFINED, tmp_path)
    assert again.refused == found.refused and again.sandbox is None, "it is known without another try"


@pytest.mark.ci
def test_a_mistake_that_triton_only_points_at_is_quoted(builder: Builder, tmp_path: Path) -> None:
    found = ahead(builder, programs.AXIS_OF_A_FLOAT, tmp_path)
    assert found.refused.startswith("a kernel did not compile: CompilationError at `")
    assert "tl.max(x, 0.0)" in found.refused


@pytest.mark.ci
def test_what_fails_for_want_of_a_gpu_says_nothing(builder: Builder, tmp_path: Path) -> None:
    found = ahead(builder, programs.NO_GPU, tmp_path)
    assert found.first_calls is not None and found.first_calls.state is BuildState.OK
    assert found.refused == "" and not any(name.endswith(".cubin") for name in files(found.first_calls))


@pytest.mark.ci
def test_what_one_source_leaves_is_no_others(builder: Builder, tmp_path: Path) -> None:
    """A candidate may leave what it likes where the compiler looks: only the same source ever gets it."""
    poisoned = programs.RELU + (
        "import os\n"
        "os.makedirs('first-calls/AAAA', exist_ok=True)\n"
        "open('first-calls/AAAA/../../first-calls/AAAA/evil', 'w').write('evil')\n"
        "os.symlink('/etc/passwd', 'first-calls/AAAA/link')\n"
    )
    found, other = ahead(builder, poisoned, tmp_path), ahead(builder, programs.RELU, tmp_path)
    assert found.first_calls is not None and other.first_calls is not None
    assert found.first_calls.key != other.first_calls.key
    assert "AAAA/evil" in files(found.first_calls) and "AAAA/evil" not in files(other.first_calls)


def judged(engine: Engine, source: str, folder: Path) -> Verification:
    assert discovery.gpus() == ()
    return engine.verify(source, programs.problem(folder), SETTINGS)


def _ci(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.ci)


@pytest.mark.parametrize("source", [programs.RELU, _ci(programs.TUNED), _ci(programs.TUNED_BY_HAND)])
def test_without_a_gpu_it_is_interpreted_and_never_timed(source: str, engine: Engine, tmp_path: Path) -> None:
    verdict = judged(engine, source, tmp_path)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert verdict.reason == "every check passed; interpreted"
    assert verdict.flags == (Flag.INTERPRETED,)
    assert verdict.measurement is None and not verdict.settings.measure
    assert verdict.kernels is not None
    (launch,) = (each for each in verdict.kernels.launches if each.origin is not Origin.COPY)
    assert (launch.name, launch.origin, launch.count, launch.ms) == ("relu_kernel", Origin.JIT, 1, None)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("source", "status", "says"),
    [
        (programs.WRONG, Status.WRONG_OUTPUT, "wrong"),
        (programs.NO_LAUNCH, Status.NO_CUSTOM_KERNEL, "no kernel of its own ran"),
        _ci(programs.DECOY, Status.NO_CUSTOM_KERNEL, "replace nothing"),
        _ci(programs.UNDEFINED, Status.BUILD_ERROR, "has no attribute 'rectified'"),
        _ci(programs.INLINE_PTX, Status.BUILT_NOT_RUN, "inline_asm not supported in interpreter mode"),
        _ci(programs.LIBDEVICE, Status.BUILT_NOT_RUN, "libdevice.fdim not supported in interpreter mode"),
    ],
    ids=["wrong", "no launch", "decoy", "undefined", "inline PTX", "libdevice"],
)
def test_what_the_interpreter_shows_is_judged(
    engine: Engine, tmp_path: Path, source: str, status: Status, says: str
) -> None:
    verdict = judged(engine, source, tmp_path)
    assert verdict.status is status, verdict.reason
    assert says in verdict.reason


@pytest.mark.ci
def test_the_example_gives_the_references_results_when_it_is_interpreted(tmp_path: Path) -> None:
    program = (
        "from tests.prompting.test_examples_run import compare; compare('triton', 'cpu'); print('equal')"
    )
    done = run(
        Job(
            argv=(sys.executable, "-c", program),
            scratch=tmp_path,
            read_only=(*python_paths(), ROOT),
            env={"TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
    )
    assert done.stdout.strip() == "equal", done.stderr


def test_without_the_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.backends.interface.find_spec", lambda _: None)
    assert discovery.device_for("triton") is None
    assert "pip install" in TRITON.missing


def _no_builds(request: BuildRequest) -> Build:
    return Build(key="", state=BuildState.UNAVAILABLE, name=request.name)


def _capability(builder: Builder) -> tuple[int, int]:
    major, minor = builder.toolchain.architecture.rstrip("abcdefghijklmnopqrstuvwxyz").split(".")
    return int(major), int(minor)


def test_a_function_whose_code_says_another_file_is_told_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line of Python makes torch.compile's kernel one of the candidate's own file."""
    from triton.runtime.jit import JITFunction

    file = tmp_path / "torchinductor_candidate.py"
    file.write_text("def renamed_kernel(x):\n    tl.store(x, 1.0 + tl.load(x))\n")
    module: dict[str, Any] = {"__name__": "written"}
    exec(compile(file.read_text(), str(file), "exec"), module)
    kernel: Any = JITFunction(module["renamed_kernel"])
    code = kernel.fn.__code__
    monkeypatch.setattr(kernel.fn, "__code__", code.replace(co_filename="/candidate.py"))
    first = TRITON.first_call
    assert first is not None
    told = {each for each in first.inside().made() if each[0] == "renamed_kernel"}
    assert told == {("renamed_kernel", str(file)), ("renamed_kernel", "/candidate.py")}
