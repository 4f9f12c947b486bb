"""The first prompt: what it always says, what it says when asked to, and what makes it another prompt."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.errors import UsageError
from kernelproof.prompting import first_prompt
from kernelproof.prompting.templates import fence, percent
from kernelproof.types import Environment, GpuInfo
from tests.prompting.material import SOURCE, problem

HOST = Environment(
    kernelproof="1",
    python="3.11",
    torch="2.13.0",
    cxx="c++ 12.2",
    platform="linux",
    cpu="Some CPU",
    cores=2,
    memory_bytes=8 << 30,
    host_sha256="0",
)
GPU = GpuInfo(
    index=0,
    name="Some GPU",
    uuid="u",
    capability="9.0",
    memory_bytes=64 << 30,
    sm_count=132,
    l2_bytes=50 << 20,
)


@pytest.mark.parametrize("backend", ["cuda", "cpp"])
def test_the_rules_and_the_whole_problem_are_there(backend: str) -> None:
    prompt = first_prompt(problem(), backend=backend)
    for rule in (
        "in the same order",
        "shape and dtype",
        "initial weights",
        "every import",
        "```python fence",
        "load_inline` once",
        "no TF32",
        "tolerance",
        "Do not define `Model`, `get_inputs`",
        "No test code",
    ):
        assert rule in prompt.system, rule
    assert ("current stream" in prompt.system) is (backend == "cuda")
    assert SOURCE in prompt.user
    assert "`ModelNew.__init__` takes (scale)" in prompt.user
    assert "`ModelNew.forward` takes (x, y)" in prompt.user
    assert prompt.history == ()


def test_the_size_is_told_with_its_values() -> None:
    small = first_prompt(problem(), backend="cpp", size="small").user
    assert "size `small`" in small
    assert "- `n = 16`\n- `shape = (2, 3)`\n" in small
    assert "sizes in the file" in first_prompt(problem(sizes={}), backend="cpp").user


def test_the_rules_that_judge_are_the_rules_that_are_told() -> None:
    usual = first_prompt(problem(), backend="cuda").system
    assert "no TF32" in usual and "Library operators may stay beside it" in usual
    wide = first_prompt(problem(), backend="cuda", numerics="tf32").system
    assert "no TF32" not in wide and "may use TF32" in wide
    pure = first_prompt(problem(), backend="cuda", purity="own-compute").system
    assert "Kernels of your own do all the work" in pure


def test_optional_sections_are_there_only_when_asked_for() -> None:
    bare = first_prompt(problem(), backend="cuda").user
    full = first_prompt(
        problem(),
        backend="cuda",
        hardware=HOST.model_copy(update={"gpu": GPU, "nvcc": "13.0"}),
        reference_ms=3.0,
        target=1.5,
        profile="matmul 98 %",
    ).user
    for text in ("# Hardware", "Some GPU", "sm_90", "50 MiB L2", "3 ms", "1.5x", ": 2 ms", "matmul 98 %"):
        assert text in full, text
        assert text not in bare, text
    on_cpu = first_prompt(problem(), backend="cpp", hardware=HOST).user
    assert "Some CPU, 2 logical cores" in on_cpu and "c++ 12.2" in on_cpu


def test_equal_prompts_hash_equal_and_others_do_not() -> None:
    prompt = first_prompt(problem(), backend="cpp")
    assert prompt == first_prompt(problem(), backend="cpp")
    others = [
        first_prompt(problem(), backend="cuda"),
        first_prompt(problem(), backend="cpp", size="small"),
        first_prompt(problem(), backend="cpp", target=2.0),
        first_prompt(problem(SOURCE + "#"), backend="cpp"),
    ]
    assert len({p.sha256 for p in [prompt, *others]}) == 5
    assert prompt.template_sha256 != others[0].template_sha256, "another worked example"
    assert prompt.template_sha256 == others[1].template_sha256


def test_nothing_in_a_problem_is_taken_for_template_or_markup() -> None:
    source = "# {{ 1 + 1 }} {% raw %} <b> & ```python\n# ````\n"
    user = first_prompt(problem(source), backend="cpp").user
    assert f"`````python\n{source}`````\n" in user


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"backend": "metal"}, "cuda, cpp"),
        ({"backend": "cpp", "size": "huge"}, "full, small"),
        ({"backend": "cpp", "template": "basic"}, "basic-v1"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(arguments: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        first_prompt(problem(), **arguments)  # type: ignore[arg-type]


@given(st.text(alphabet="`~a\n {", max_size=40))
def test_a_fence_is_never_closed_by_what_it_holds(text: str) -> None:
    ticks = re.match(r"`+", fence(text))
    assert ticks is not None
    assert ticks[0] not in text
    body = text if text.endswith("\n") or not text else text + "\n"
    assert fence(text) == f"{ticks[0]}\n{body}{ticks[0]}"


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_percentage_is_zero_or_whole_only_when_exact(wrong: int, count: int) -> None:
    shown = percent(min(wrong, count) / count)
    assert (shown == "0 %") == (wrong == 0)
    assert (shown == "100 %") == (wrong >= count)
