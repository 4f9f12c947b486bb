"""The template `profiled`: the named bottleneck, and what each kernel takes of an SM."""

from __future__ import annotations

from kernelproof.prompting import Failure, first_prompt, repair_prompt
from kernelproof.types import Build, BuildState, Kernels, Launch, Origin, Pace, Response, Status
from tests.analysis.test_bottleneck import HERE, measured
from tests.analysis.test_resources import SAID
from tests.prompting.material import problem, verification


def question(failure: Failure, backend: str = "cuda") -> str:
    asked = {"backend": backend, "template": "profiled-v1"}
    first = first_prompt(problem(), **asked)
    return repair_prompt(
        problem(), **asked, previous=first, response=Response(text="x"), failure=failure
    ).user


def test_a_correct_answer_is_told_what_its_kernels_take() -> None:
    slow = Launch(
        name="my::plain(float*)",
        origin=Origin.OWN,
        count=2,
        ms=0.9,
        threads=256,
        blocks=64,
        shared_bytes=2048,
    )
    other = Launch(name="at::copy", origin=Origin.COPY, count=1, ms=0.05)
    failure = Failure.from_verification(
        verification(
            Status.CORRECT,
            measurement=measured(0.8).model_copy(update={"pace": Pace.FASTER}),
            kernels=Kernels(launches=(other, slow), own_share=0.95),
            builds=(Build(key="k", state=BuildState.OK, name="ext", log=SAID),),
            environment=HERE,
        )
    )
    user = question(failure)
    assert "- Bottleneck: memory. The bytes that must be moved" in user and "1500 GB/s are reached" in user
    assert (
        "2 launches, 0.9 ms together; 64 blocks of 256 threads; 110 registers a thread, 16 bytes of them "
        "spilled, a stack of 1024 bytes; 2048 bytes of shared memory a block; at most 25 % occupancy, "
        "limited by registers" in user
    )
    assert "- `at::copy` (copy): 1 launch, 0.05 ms together\n" in user


def test_nothing_is_said_where_nothing_is_known() -> None:
    for backend in ("cuda", "cpp", "triton"):
        user = question(Failure(status=Status.CORRECT), backend)
        assert "Bottleneck" not in user and "registers" not in user
